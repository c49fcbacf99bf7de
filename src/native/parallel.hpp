// Work shared by threads that live for one call.
//
// No pool outlives a call, so a process may fork at any time, and the caller's limit is all that counts. Starting
// a thread takes some ten microseconds: `threads_for` asks for none where the work is smaller than that is worth.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace likewise {

// Threads that are worth starting for so many multiplications.
inline int threads_for(double multiplications, int limit) {
    constexpr double kWorthAThread = 2e7;
    return std::max(1, std::min(limit, int(multiplications / kWorthAThread)));
}

// Calls work(item, thread) for every item below n. Items are taken in order by whichever thread is free; what an
// item computes must not depend on that. The first exception is thrown again once all threads have ended.
template <class Work>
void parallel(int64_t n, int n_threads, Work&& work) {
    std::atomic<int64_t> next{0};
    std::exception_ptr failure;
    std::mutex lock;
    auto run = [&](int thread) {
        try {
            for (int64_t item; (item = next.fetch_add(1)) < n;) work(item, thread);
        } catch (...) {
            const std::lock_guard<std::mutex> guard(lock);
            if (!failure) failure = std::current_exception();
            next = n;
        }
    };
    std::vector<std::thread> others;
    const int used = int(std::min<int64_t>(n_threads, n));
    try {
        for (int thread = 1; thread < used; ++thread) others.emplace_back(run, thread);
    } catch (const std::system_error&) {
        // Fewer threads than asked for do the same work.
    }
    run(0);
    for (auto& other : others) other.join();
    if (failure) std::rethrow_exception(failure);
}

// Threads that share the steps of one piece of work, step after step, while this lives. A step takes microseconds, so
// they look for the next one without sleeping; where none comes for long, they let others run.
class Team {
public:
    explicit Team(int n_threads) {
        try {
            for (int thread = 1; thread < n_threads; ++thread) others_.emplace_back([this, thread] { follow(thread); });
        } catch (const std::system_error&) {
            // Fewer threads than asked for do the same work.
        }
        size_ = int(others_.size()) + 1;
    }
    ~Team() {
        step_ = nullptr;
        round_.fetch_add(1, std::memory_order_release);
        for (auto& other : others_) other.join();
    }
    Team(const Team&) = delete;

    // Calls part(thread, threads) on every thread, and returns when all have ended. It must not throw.
    template <class Part>
    void together(const Part& part) {
        step_ = [](const void* own, int thread, int threads) { (*static_cast<const Part*>(own))(thread, threads); };
        part_ = &part;
        left_.store(size_ - 1, std::memory_order_relaxed);
        round_.fetch_add(1, std::memory_order_release);
        part(0, size_);
        wait([this] { return left_.load(std::memory_order_acquire) == 0; });
    }

private:
    template <class Done>
    static void wait(Done&& done) {
        constexpr int kLong = 10000;
        for (int looks = 0; !done(); ++looks) {
            if (looks > kLong) std::this_thread::yield();
#if defined(__x86_64__)
            else __builtin_ia32_pause();
#endif
        }
    }
    void follow(int thread) {
        for (uint32_t seen = 0;; ++seen) {
            wait([&] { return round_.load(std::memory_order_acquire) != seen; });
            if (!step_) return;
            step_(part_, thread, size_);
            left_.fetch_sub(1, std::memory_order_release);
        }
    }

    void (*step_)(const void*, int, int) = nullptr;
    const void* part_ = nullptr;
    int size_ = 1;
    std::atomic<uint32_t> round_{0};
    std::atomic<int> left_{0};
    std::vector<std::thread> others_;
};

}  // namespace likewise
