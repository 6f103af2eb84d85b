/**
 * Loaded before a program whose allocations are counted: answers, on the port of `COUNT_PORT`, with the number of
 * objects on its heap. Without garbage collection (`BUN_JSC_useGC=0`) that is how many it has made. `/exchanges` has
 * the young collected first, and answers with how many exchanges are still held: each has one AbortController.
 */
import { edenGC, heapStats } from 'bun:jsc'

function exchanges(): number {
  edenGC()
  return Number(heapStats().objectTypeCounts.AbortController ?? 0)
}

const objects = (): number =>
  Object.values(heapStats().objectTypeCounts).reduce((sum: number, count) => sum + Number(count), 0)

Bun.serve({
  hostname: '127.0.0.1',
  port: Number(process.env.COUNT_PORT),
  fetch: ({ url }) => Response.json(url.endsWith('/exchanges') ? exchanges() : objects()),
})
