/**
 * Holds the sums that charts show (rollup.ts) against what the events say, where every event of a bucket is still kept:
 * requests and cost of each hour by verdict, of all teams together and of what belongs to none, and of each day by team
 * and verdict. Only of a ledger in which nothing else was found, because otherwise it is the events that are wrong, and
 * only when all of it is read. Minutes, tokens, times, and the sums by model, gateway, token and reason, are not looked at.
 *
 * What comes in meanwhile is left out: sums are complete for the events up to a position, and a bucket to which a later
 * one belongs is passed over.
 */
import { timestamp } from '../lib/clock.ts'
import { turn } from '../lib/turn.ts'
import type { Database } from '../store/open.ts'
import { asBytes, shownText } from '../store/stored-text.ts'
import { controlPlaneChain } from './chain.ts'
import { countedOutcome, everyTeam, noTeam, stepMilliseconds } from './rollup.ts'
import { foldRollups } from './rollup-fold.ts'
import { type Finding, finding } from './verify-finding.ts'
import type { EventRow } from './verify-row.ts'

const steps = ['hour', 'day'] as const
type ComparedStep = (typeof steps)[number]

interface Sum {
  requests: number
  cost: number
}

const mostFindings = 1000
const windowMs = 7 * stepMilliseconds.day

export class SumsCheck {
  readonly #ledger: Database
  /** Events up to this position are in the sums. */
  readonly #last: bigint
  #givenUp = false
  readonly #expected = new Map<string, Sum>()

  private constructor(ledger: Database, last: bigint) {
    this.#ledger = ledger
    this.#last = last
  }

  /** Null where much waits to be added to the sums. */
  static async start(ledger: Database): Promise<SumsCheck | null> {
    const [row] = await ledger.read<{ last: string }>(
      'select cast(coalesce(max(position), 0) as text) as last from events',
    )
    await foldRollups(ledger)
    const waiting = await ledger.read('select 1 from event_rollup_arrivals limit 1')
    return waiting.length > 0 ? null : new SumsCheck(ledger, BigInt(row?.last ?? 0))
  }

  /** Counts an event; in any order. */
  add({ event, cells, position }: EventRow): void {
    const { event_type: type, received_at: receivedAt } = cells
    if (event === null || type !== 'gateway.request.outcome' || typeof receivedAt !== 'number') return
    if (BigInt(position) > this.#last) return
    const { at, scope, verdict, cost } = countedOutcome(event, receivedAt)
    this.#count('hour', scope === noTeam ? noTeam : everyTeam, { at, verdict, cost })
    this.#count('day', scope, { at, verdict, cost })
  }

  /** Nothing is to be said of the sums. */
  giveUp(): void {
    this.#givenUp = true
  }

  /** To be called when all events have been counted. */
  async findings(): Promise<Finding[]> {
    if (this.#givenUp) return []
    const from = await this.#keptFrom()
    const findings: Finding[] = []
    for (const step of steps) {
      const found = await this.#stored(step, from)
      for (const key of new Set([...found.keys(), ...this.#expected.keys()])) {
        const [its = '', at = 0] = JSON.parse(key)
        if (its !== step || at < from || findings.length >= mostFindings) continue
        const [stored, expected] = [found.get(key), this.#expected.get(key)]
        if (stored?.requests === expected?.requests && stored?.cost === expected?.cost) continue
        if (await this.#hasGrown(step, at)) continue
        findings.push(finding('rollup.differs', { column: nameOf(key) }))
      }
    }
    return findings
  }

  #count(
    step: ComparedStep,
    scope: string,
    { at, verdict, cost }: { at: number; verdict: string; cost: number },
  ): void {
    const key = JSON.stringify([step, at - (at % stepMilliseconds[step]), scope, verdict])
    const sum = this.#expected.get(key)
    if (sum === undefined) this.#expected.set(key, { requests: 1, cost })
    else {
      sum.requests += 1
      sum.cost += cost
    }
  }

  async #stored(step: ComparedStep, from: number): Promise<Map<string, Sum>> {
    const found = new Map<string, Sum>()
    const [bounds] = await this.#ledger.read<{ low: number | null; high: number | null }>(
      `select min(at) as low, max(at) as high from event_rollups where kind = 'all' and step = ?
        and at between ? and 8640000000000000`,
      [step, from],
    )
    const scopes = step === 'hour' ? `scope in ('${everyTeam}', '${noTeam}')` : `scope <> '${everyTeam}'`
    for (let at = bounds?.low ?? 0; at <= (bounds?.high ?? -1); at += windowMs) {
      const rows = await this.#ledger.read<Sum & { scope: unknown; verdict: unknown; at: number }>(
        `select ${asBytes('scope')} as scope, at, ${asBytes('verdict')} as verdict, total(requests) as requests,
          total(cost) as cost from event_rollups
          where kind = 'all' and step = ? and ${scopes} and at >= ? and at < ? group by 1, 2, 3`,
        [step, at, at + windowMs],
      )
      for (const { scope, verdict, requests, cost, ...row } of rows) {
        found.set(JSON.stringify([step, row.at, shownText(scope), shownText(verdict)]), { requests, cost })
      }
      await turn()
    }
    return found
  }

  /** From when on no event can have been removed: of each chain the oldest goes first, and none is later than its receipt. */
  async #keptFrom(): Promise<number> {
    const [row] = await this.#ledger.read<{ at: number }>(
      `select coalesce(max(coalesce((select received_at from events where events.chain = chain_floors.chain
          order by seq limit 1), (select updated_at from chains where chains.chain = chain_floors.chain))), 0) as at
        from chain_floors where chain <> '${controlPlaneChain}'`,
    )
    const day = stepMilliseconds.day
    return row === undefined || row.at === 0 ? 0 : (Math.floor(row.at / day) + 1) * day
  }

  async #hasGrown(step: ComparedStep, at: number): Promise<boolean> {
    const later = await this.#ledger.read(
      'select 1 from events where position > ? and +timestamp >= ? and +timestamp < ? limit 1',
      [this.#last.toString(), at, at + stepMilliseconds[step]],
    )
    return later.length > 0
  }
}

function nameOf(key: string): string {
  const [step, at, scope, verdict] = JSON.parse(key)
  const team = scope === everyTeam ? 'all teams' : scope === noTeam ? 'no team' : `team ${scope}`
  return `${step} ${timestamp(at)} ${team} ${verdict}`
}
