/**
 * Loaded before a program whose allocations are counted: answers, on the port of `COUNT_PORT`, with the number of
 * objects on its heap. Without garbage collection (`BUN_JSC_useGC=0`) that is how many it has made.
 */
import { heapStats } from 'bun:jsc'

Bun.serve({
  hostname: '127.0.0.1',
  port: Number(process.env.COUNT_PORT),
  fetch: () =>
    Response.json(Object.values(heapStats().objectTypeCounts).reduce((sum: number, count) => sum + Number(count), 0)),
})
