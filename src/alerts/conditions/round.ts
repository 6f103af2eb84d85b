/**
 * What one evaluation reads, each thing once however many alerts ask for it. Traffic is read from the sums behind charts
 * (events/rollups/rollup.ts), never from the events.
 *
 * SQL text: ranges of the primary key of the sums.
 */
import {
  everyTeam,
  hasEveryTeam,
  noTeam,
  otherKey,
  type RollupKind,
  rollupShapes,
  type Step,
  stepMilliseconds,
} from '../../events/rollups/rollup.ts'
import type { AlertDependencies } from '../dependencies.ts'
import type { Alert, FiringRow } from '../stored-alert.ts'

/** Sums of one key by verdict. Cost in nano-dollars. */
export interface KeySums {
  key: string
  verdict: string
  requests: number
  cost: number
}

export interface TrafficQuery {
  kind: RollupKind
  step: Step
  /** Of one team; null: of all. */
  teamId: string | null
  /** Of one key of the kind; null: of all. */
  key: string | null
  /** Milliseconds since the epoch. */
  from: number
  until: number
}

/** By the id of their alert, as they were when the round began. */
type OpenFirings = ReadonlyMap<string, readonly Pick<FiringRow, 'subject'>[]>

export class Round {
  readonly dependencies: AlertDependencies
  readonly now: number
  readonly #open: OpenFirings
  readonly #known = new Map<string, Promise<unknown>>()

  constructor(dependencies: AlertDependencies, open: OpenFirings = new Map()) {
    this.dependencies = dependencies
    this.#open = open
    this.now = dependencies.clock.now()
  }

  /** What the open firings of an alert are about. */
  openSubjects({ id }: Pick<Alert, 'id'>): string[] {
    return [...new Set(this.#open.get(id)?.map(({ subject }) => subject))]
  }

  /** What `read` gives, asked once under this name. */
  once<Value>(name: string, read: () => Promise<Value>): Promise<Value> {
    const known = this.#known.get(name)
    if (known !== undefined) return known as Promise<Value>
    const reading = read()
    this.#known.set(name, reading)
    return reading
  }

  traffic(query: TrafficQuery): Promise<readonly KeySums[]> {
    const { kind, step, teamId, key, from, until } = query
    return this.once(`traffic ${JSON.stringify(query)}`, async () =>
      this.dependencies.ledger.read<KeySums>(
        `select key, verdict, total(requests) as requests, total(cost) as cost from event_rollups
          where kind = ? and step = ? and scope in (select value from json_each(?)) and at >= ? and at < ?
            ${key === null ? '' : 'and key = ?'} group by key, verdict`,
        [kind, step, JSON.stringify(await this.#scopes(kind, teamId)), from, until, ...(key === null ? [] : [key])],
      ),
    )
  }

  /**
   * When the first hour, or day, of what the query names began; null if there was no request. It counts from `from` on by
   * hours, and before that by days where the kind has days: these are few however long history is kept.
   */
  async firstRecord(query: Omit<TrafficQuery, 'step'>): Promise<number | null> {
    const { day } = stepMilliseconds
    const from = query.from - (query.from % day)
    const older = await this.#first({ ...query, step: hasDays(query.kind) ? 'day' : 'hour', from: 0, until: from })
    return older ?? (await this.#first({ ...query, step: 'hour', from }))
  }

  async #first({ kind, step, teamId, key, from, until }: TrafficQuery): Promise<number | null> {
    const [row] = await this.dependencies.ledger.read<{ first: number | null }>(
      `select min((select at from event_rollups where kind = ? and step = ? and scope = scopes.value
        and at >= ? and at < ? ${key === null ? '' : 'and key = ?'} order by at limit 1)) as first
        from json_each(?) as scopes`,
      [kind, step, from, until, ...(key === null ? [] : [key]), JSON.stringify(await this.#scopes(kind, teamId))],
    )
    return row?.first ?? null
  }

  async #scopes(kind: RollupKind, teamId: string | null): Promise<readonly string[]> {
    if (teamId !== null) return [teamId]
    if (hasEveryTeam(kind)) return [everyTeam, noTeam]
    return await this.once('scopes', async () => {
      const day = this.now - (this.now % stepMilliseconds.day)
      const rows = await this.dependencies.ledger.read<{ scope: string }>(
        `select distinct scope from event_rollups where kind = 'all' and step = 'day' and at >= ? and scope <> ?`,
        [day - 2 * stepMilliseconds.day, everyTeam],
      )
      return rows.map(({ scope }) => scope)
    })
  }
}

const hasDays = (kind: RollupKind): boolean =>
  rollupShapes.find((shape) => shape.kind === kind)?.steps.includes('day') ?? false

const kindOfScope = { gateway: 'gateway', provider: 'provider', model: 'model', token: 'token' } as const

/** Which sums an alert looks at: those of its scope. */
export function trafficOf({
  scope: { kind, id },
}: Pick<Alert, 'scope'>): Pick<TrafficQuery, 'kind' | 'teamId' | 'key'> {
  if (kind === 'team') return { kind: 'all', teamId: id, key: null }
  if (kind === 'organization' || kind === 'budget') return { kind: 'all', teamId: null, key: null }
  return { kind: kindOfScope[kind], teamId: null, key: id }
}

/** The sums of the last minutes. Of tokens only hours are kept. */
export function lastMinutes(
  round: Round,
  kind: RollupKind,
  minutes: number,
): Pick<TrafficQuery, 'step' | 'from' | 'until'> {
  const step = kind === 'token' ? 'hour' : 'minute'
  const from = round.now - minutes * stepMilliseconds.minute
  return { step, from: from - (from % stepMilliseconds[step]), until: round.now + stepMilliseconds.minute }
}

/** A key as a person reads it. */
export const shownKey = (key: string): string => (key === otherKey ? 'others' : key)
