/** What `top` shows, as lines: sums of all, then of each model and each token. */
import { z } from 'zod'
import { columns, dollars, printable } from '../../terminal/table.ts'

const count = z.number()
const sums = {
  ...{ requests: count, refused: count, errors: count, latency_ms: count },
  ...{ input_tokens: count, output_tokens: count, cost: count },
}
const named = z.record(z.string(), z.string().nullable())

/** The answer of the control plane for the time that is looked at, by model and token. */
export const usedSchema = z.looseObject({
  rows: z.array(z.looseObject({ group: named, names: named, ...sums })),
  totals: z.looseObject(sums),
})
type Used = z.infer<typeof usedSchema>
type Sums = Used['totals']

export const targetsSchema = z.looseObject({
  targets: z.array(z.looseObject({ model: z.string(), in_flight: z.number() })),
})

export const todaySchema = z.looseObject({ totals: z.array(z.looseObject({ requests: count, cost: count })) })

export interface Seen {
  used: Used
  /** Null where this caller may not see it. */
  targets: z.infer<typeof targetsSchema> | null
  today: z.infer<typeof todaySchema>
}

const numbers = ['REQUESTS', 'IN FLIGHT', 'REFUSED', 'ERRORS', 'LATENCY', 'TOKENS IN', 'TOKENS OUT', 'USD']
const right = new Set(numbers.map((_, index) => index - numbers.length))

/** The lines of one view. */
export function topFrame({ used, targets, today }: Seen, { title }: { title: string }): string[] {
  const inFlight = new Map<string, number>()
  for (const { model, in_flight } of targets?.targets ?? []) {
    inFlight.set(model, (inFlight.get(model) ?? 0) + in_flight)
  }
  const all = targets === null ? '-' : String([...inFlight.values()].reduce((sum, each) => sum + each, 0))
  const { totals } = used
  const spentToday = today.totals.reduce((sum, { cost }) => sum + cost, 0)
  const heads = [
    ['requests', String(totals.requests)],
    ['in flight', all],
    ['refused', String(totals.refused)],
    ['errors', String(totals.errors)],
    ['latency', latencyOf(totals)],
    ['USD', dollars(totals.cost)],
    ['USD today', dollars(spentToday)],
  ]
  const models = summed(used, 'model')
  for (const [model, flying] of inFlight) if (flying > 0 && !models.has(model)) models.set(model, nothing())
  const table = (head: string, groups: ReadonlyMap<string, Sums>, flying: (name: string) => string) => [
    [head, ...numbers],
    ...[...groups]
      .toSorted(([, one], [, other]) => other.requests - one.requests)
      .map(([name, each]) => [printable(name), ...cells(each, flying(name))]),
  ]
  const ofModel = (name: string) => (targets === null ? '-' : String(inFlight.get(name) ?? 0))
  return [
    title,
    heads.map((pair) => pair.join(' ')).join('   '),
    '',
    ...lines(table('MODEL', models, ofModel)),
    '',
    ...lines(table('TOKEN', summed(used, 'token'), () => '-')),
  ]
}

const lines = (rows: readonly (readonly string[])[]): string[] => columns(rows, right).trimEnd().split('\n')

const nothing = (): Sums => ({
  ...{ requests: 0, refused: 0, errors: 0, latency_ms: 0, input_tokens: 0, output_tokens: 0, cost: 0 },
})

/** The sums of each value of a dimension, by its name. */
function summed({ rows }: Used, dimension: string): Map<string, Sums> {
  const groups = new Map<string, Sums>()
  for (const row of rows) {
    const name = row.names[dimension] ?? row.group[dimension] ?? '-'
    const sum = groups.get(name) ?? nothing()
    groups.set(name, sum)
    sum.requests += row.requests
    sum.refused += row.refused
    sum.errors += row.errors
    sum.latency_ms += row.latency_ms
    sum.input_tokens += row.input_tokens
    sum.output_tokens += row.output_tokens
    sum.cost += row.cost
  }
  return groups
}

const cells = (sums: Sums, inFlight: string): string[] => [
  ...[String(sums.requests), inFlight, String(sums.refused), String(sums.errors), latencyOf(sums)],
  ...[String(sums.input_tokens), String(sums.output_tokens), dollars(sums.cost)],
]

/** The mean. */
const latencyOf = ({ requests, latency_ms }: Sums): string =>
  requests === 0 ? '-' : `${Math.round(latency_ms / requests)} ms`
