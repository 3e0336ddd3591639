/* The four functions that a freestanding C compiler may call on its own. Compiled with -fno-builtin. */
#include <stddef.h>
#include <stdint.h>

void *memcpy(void *to, const void *from, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) ((char *)to)[i] = ((const char *)from)[i];
    return to;
}

void *memmove(void *to, const void *from, size_t bytes) {
    if ((uintptr_t)to <= (uintptr_t)from) return memcpy(to, from, bytes);
    for (size_t i = bytes; i-- > 0;) ((char *)to)[i] = ((const char *)from)[i];
    return to;
}

void *memset(void *to, int value, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) ((char *)to)[i] = (char)value;
    return to;
}

int memcmp(const void *a, const void *b, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        if (((const uint8_t *)a)[i] != ((const uint8_t *)b)[i]) return ((const uint8_t *)a)[i] - ((const uint8_t *)b)[i];
    return 0;
}
