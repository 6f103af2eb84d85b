/** What streams that are held open cost: processor time for each frame passed on, memory, time to the first frame. */
import { createToken } from '../../support/client.ts'
import { until } from '../../support/eventually.ts'
import { startGatehouse } from '../../support/harness.ts'
import { processorSeconds, residentBytes } from '../../support/processes.ts'
import { openStream, startDrippingProvider } from '../generator/streams.ts'
import { median } from '../generator/timing.ts'
import type { Curve, Point } from './curve.ts'

const everyMs = 200
const seconds = 5

export const streamCurve: Curve = async () => {
  const provider = startDrippingProvider(everyMs)
  try {
    await using gatehouse = await startGatehouse({ upstream: provider })
    const token = (await createToken(gatehouse)).token_value
    const points: Point[] = []
    for (const count of [1, 10, 100, 500, 1000, 2000]) {
      const firstMs: number[] = []
      const open = async () => {
        const startedAt = performance.now()
        const socket = await openStream(gatehouse.gatewayUrl, token)
        firstMs.push(performance.now() - startedAt)
        return socket
      }
      const sockets = await Promise.all(Array.from({ length: count }, open))
      const [before, framesBefore] = [processorSeconds(gatehouse.gatewayPid()), provider.frames()]
      await Bun.sleep(seconds * 1000)
      const spent = processorSeconds(gatehouse.gatewayPid()) - before
      const figures = {
        'processor ms/s': (spent * 1000) / seconds,
        'µs/frame': (spent * 1e6) / (provider.frames() - framesBefore),
        'gateway MiB': residentBytes(gatehouse.gatewayPid()) / 1024 ** 2,
        'first frame p50 ms, all at once': median(firstMs),
        'still open': sockets.filter((socket) => !socket.destroyed).length,
      }
      points.push({ at: count, figures })
      for (const socket of sockets) socket.destroy()
      await until('the provider has heard that all have left', () => provider.running() === 0, { withinMs: 30_000 })
    }
    return points
  } finally {
    await provider.stop()
  }
}
