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

}  // namespace likewise
