/** What more events in the ledger, and more gateways on hosts of their own, cost. */
import { rmSync } from 'node:fs'
import { temporaryDirectory } from '../../support/harness.ts'
import { type Sidecar, SidecarFleet } from '../../support/sidecar-fleet.ts'
import { measureLedger } from '../events/events-at-scale.ts'
import { median, timesOf } from '../generator/timing.ts'
import type { Curve, Point } from './curve.ts'

export const eventCurve: Curve = async (full) => {
  const points: Point[] = []
  for (const count of full ? [10_000, 100_000, 1_000_000, 5_000_000] : [10_000, 50_000]) {
    const directory = temporaryDirectory()
    try {
      points.push({ at: count, figures: await measureLedger(directory, count) })
    } finally {
      rmSync(directory, { recursive: true, force: true })
    }
  }
  return points
}

const seconds = 5

/** The control plane is in this process, so that its time is this one's. */
export const sidecarCurve: Curve = async (full) => {
  const fleet = await SidecarFleet.start()
  try {
    const sidecars: Sidecar[] = []
    const points: Point[] = []
    for (const count of full ? [1, 5, 10, 25, 50] : [1, 3]) {
      while (sidecars.length < count) {
        const sidecar = await fleet.sidecar(`number-${sidecars.length}`)
        await sidecar.ready()
        sidecars.push(sidecar)
      }
      const before = process.cpuUsage()
      await Bun.sleep(seconds * 1000)
      const { user, system } = process.cpuUsage(before)
      const tokens: string[] = []
      for (let made = 0; made < 5; made++) tokens.push(await fleet.addToken())
      const revocations = await timesOf(tokens.length, (round) => fleet.revoke(tokens[round] ?? ''))
      const figures = {
        'control plane idle, ms a second': (user + system) / 1000 / seconds,
        'revocation p50 ms': median(revocations),
      }
      points.push({ at: count, figures })
    }
    return points
  } finally {
    await fleet.stop()
  }
}
