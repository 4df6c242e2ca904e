/* What a program for the Python package takes of glibc in place of versions that are newer than 2.28 (x86-64). The linker sends
 * every call of NAME, also those of static libraries, to __wrap_NAME here (--wrap; cmake/draftproof_portable.cmake reads the names
 * out of this file).
 *
 *   OLD   has an old version: what glibc changed is the library that holds it (threads and dl* since 2.34).
 *   NEW   has none. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>

#pragma GCC visibility push(hidden)

#define DEFINED_AS(name, result, parameters) \
  result __wrap_##name parameters;           \
  result __wrap_##name parameters
#define OLD(name, result, parameters, arguments)                       \
  __attribute__((visibility("default"))) result old_##name parameters; \
  __asm__(".symver old_" #name ", " #name "@GLIBC_2.2.5");             \
  DEFINED_AS(name, result, parameters) {                               \
    return old_##name arguments;                                       \
  }
#define NEW(name, result, parameters, call) \
  DEFINED_AS(name, result, parameters) {    \
    return call;                            \
  }

// clang-format off
OLD(pthread_create, int, (pthread_t* t, const pthread_attr_t* a, void* (*run)(void*), void* with), (t, a, run, with))
OLD(pthread_detach, int, (pthread_t t), (t))
OLD(pthread_join, int, (pthread_t t, void** result), (t, result))
OLD(pthread_getspecific, void*, (pthread_key_t key), (key))
OLD(pthread_setspecific, int, (pthread_key_t key, const void* value), (key, value))
OLD(pthread_key_create, int, (pthread_key_t* key, void (*end)(void*)), (key, end))
OLD(pthread_key_delete, int, (pthread_key_t key), (key))
OLD(pthread_mutex_trylock, int, (pthread_mutex_t* m), (m))
OLD(pthread_mutexattr_init, int, (pthread_mutexattr_t* a), (a))
OLD(pthread_mutexattr_destroy, int, (pthread_mutexattr_t* a), (a))
OLD(pthread_mutexattr_settype, int, (pthread_mutexattr_t* a, int type), (a, type))
OLD(pthread_once, int, (pthread_once_t* once, void (*run)(void)), (once, run))
OLD(pthread_rwlock_init, int, (pthread_rwlock_t* lock, const pthread_rwlockattr_t* a), (lock, a))
OLD(pthread_rwlock_destroy, int, (pthread_rwlock_t* lock), (lock))
OLD(pthread_rwlock_rdlock, int, (pthread_rwlock_t* lock), (lock))
OLD(pthread_rwlock_wrlock, int, (pthread_rwlock_t* lock), (lock))
OLD(pthread_rwlock_unlock, int, (pthread_rwlock_t* lock), (lock))
OLD(pthread_sigmask, int, (int how, const sigset_t* set, sigset_t* before), (how, set, before))

OLD(dladdr, int, (const void* address, Dl_info* info), (address, info))
OLD(dlclose, int, (void* library), (library))
OLD(dlerror, char*, (void), ())
OLD(dlopen, void*, (const char* path, int mode), (path, mode))
OLD(dlsym, void*, (void* library, const char* name), (library, name))

// Version 1 of struct stat, which x86-64 has always had.
int __xstat(int version, const char* path, struct stat* out) __attribute__((visibility("default")));
int __lxstat(int version, const char* path, struct stat* out) __attribute__((visibility("default")));
int __fxstat(int version, int file, struct stat* out) __attribute__((visibility("default")));
NEW(stat, int, (const char* path, struct stat* out), __xstat(1, path, out))
NEW(stat64, int, (const char* path, struct stat* out), __xstat(1, path, out))
NEW(lstat, int, (const char* path, struct stat* out), __lxstat(1, path, out))
NEW(lstat64, int, (const char* path, struct stat* out), __lxstat(1, path, out))
NEW(fstat, int, (int file, struct stat* out), __fxstat(1, file, out))
NEW(fstat64, int, (int file, struct stat* out), __fxstat(1, file, out))

static uint32_t random_word(void) {
  uint32_t word;
  if (getrandom(&word, sizeof word, 0) != sizeof word) abort();
  return word;
}
NEW(arc4random, uint32_t, (void), random_word())
// clang-format on

// NEW(__libc_single_threaded): libstdc++ asks it before it counts references without atomic instructions.
char __wrap___libc_single_threaded = 0;

#if !defined(__PIC__) || defined(__PIE__)  // of a program
typedef void constructor(int, char**, char**);
extern constructor* __preinit_array_start[];
extern constructor* __preinit_array_end[];
extern constructor* __init_array_start[];
extern constructor* __init_array_end[];

// Since glibc 2.34 __libc_start_main runs constructors by itself, where it is given no function that does. Older ones leave
// them to that function, which was then part of every program.
static void run_constructors(int argument_count, char** arguments, char** environment) {
  for (constructor** run = __preinit_array_start; run < __preinit_array_end; ++run)
    (*run)(argument_count, arguments, environment);
  for (constructor** run = __init_array_start; run < __init_array_end; ++run)
    (*run)(argument_count, arguments, environment);
}

static int start(int (*program)(int, char**, char**), int argument_count, char** arguments, void (*end)(void),
                 void* stack);
NEW(__libc_start_main, int,
    (int (*program)(int, char**, char**), int argument_count, char** arguments, constructor* before,
     void (*after)(void), void (*end)(void), void* stack),
    ((void)before, (void)after, start(program, argument_count, arguments, end, stack)))

__attribute__((visibility("default"))) int old_libc_start_main(int (*program)(int, char**, char**), int argument_count,
                                                               char** arguments, constructor* before,
                                                               void (*after)(void), void (*end)(void), void* stack);
__asm__(".symver old_libc_start_main, __libc_start_main@GLIBC_2.2.5");
static int start(int (*program)(int, char**, char**), int argument_count, char** arguments, void (*end)(void),
                 void* stack) {
  return old_libc_start_main(program, argument_count, arguments, run_constructors, NULL, end, stack);
}
#endif
