"""Run kernels in processes of their own.

The parent (`client`) makes the data and judges what comes back. The runner process (`native_worker`,
`wasmtime_worker`) holds one kernel and one block of shared memory (`arena`), and only makes calls: it never has the
expected results, the reference or a key. It imports this package, so nothing is imported here.
"""
