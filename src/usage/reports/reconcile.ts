/**
 * Compares what a provider charges with what was booked here, by day and model, and names each difference:
 *
 *  only_invoiced    nothing was booked: requests went past Gatehouse, or the model has another name here
 *  only_booked      nothing is on the invoice: it has come too early, or the requests went elsewhere
 *  price            the tokens are alike and the money is not: a discount, or a price that changed
 *  tokens           the tokens differ: requests went past Gatehouse, or estimates were booked
 *  amount           the money differs, and the file has no tokens to say why
 *
 * Names of models are compared without the date at their end, without a prefix, in lower case and with dashes: providers
 * write `Claude Haiku 4.5`, `claude-haiku-4-5` and `claude-haiku-4-5-20251001` for one model.
 */
import { fromNano, toNano } from '../../lib/money.ts'
import type { InvoiceLine } from './invoice.ts'

export const differenceKinds = ['only_invoiced', 'only_booked', 'price', 'tokens', 'amount'] as const
export type DifferenceKind = (typeof differenceKinds)[number]

/** What was booked; cost in US dollars. */
export interface Booked {
  day: string
  model: string
  cost: number
  inputTokens: number
  outputTokens: number
}

interface Amounts {
  cost: number | null
  inputTokens: number | null
  outputTokens: number | null
}

export interface Difference {
  kind: DifferenceKind
  day: string | null
  model: string | null
  invoiced: Amounts | null
  booked: Amounts | null
}

export interface Reconciliation {
  invoiced: Amounts
  booked: Amounts
  /** The largest first. */
  differences: Difference[]
  /** How many pairs of a day and a model are alike. */
  alike: number
}

/** Rounding of providers to cents, and what is not worth a person's time. */
export interface Tolerance {
  share: number
  amount: number
}

export function comparableModel(name: string): string {
  return name
    .toLowerCase()
    .replace(/^.*\//, '')
    .replaceAll(/[\s._@:]+/g, '-')
    .replace(/-(?:20\d{6}|20\d{2}-\d{2}-\d{2}|latest)(?:-v\d+(?:-\d+)?)?$/, '')
}

interface Pair {
  day: string | null
  model: string | null
  invoiced: Amounts | null
  booked: Amounts | null
}

export function reconcile(
  lines: readonly InvoiceLine[],
  booked: readonly Booked[],
  tolerance: Tolerance,
): Reconciliation {
  const hasDays = lines.some(({ day }) => day !== null)
  const pairs = new Map<string, Pair>()
  const pairOf = (day: string | null, model: string | null): Pair => {
    const name = JSON.stringify([hasDays ? day : null, model === null ? null : comparableModel(model)])
    const pair = pairs.get(name) ?? { day: hasDays ? day : null, model, invoiced: null, booked: null }
    pairs.set(name, pair)
    return pair
  }
  for (const { day, model, ...amounts } of lines) {
    const pair = pairOf(day, model)
    pair.invoiced = added(pair.invoiced, amounts)
  }
  for (const { day, model, ...amounts } of booked) {
    const pair = pairOf(day, model)
    pair.model = model
    pair.booked = added(pair.booked, amounts)
  }
  const differences = [...pairs.values()].flatMap(({ invoiced, booked: ours, ...of }) => {
    const pair = { ...of, invoiced: invoiced && exact(invoiced), booked: ours && exact(ours) }
    const kind = kindOf(pair, tolerance)
    return kind === null ? [] : [{ kind, ...pair }]
  })
  return {
    invoiced: exact(lines.reduce<Amounts>(added, nothing)),
    booked: exact(booked.reduce<Amounts>(added, nothing)),
    differences: differences.toSorted((left, right) => sizeOf(right) - sizeOf(left)),
    alike: pairs.size - differences.length,
  }
}

const nothing: Amounts = { cost: null, inputTokens: null, outputTokens: null }

/** With a whole number of nano-dollars: sums of decimal fractions are off by less. */
const exact = ({ cost, ...tokens }: Amounts): Amounts => ({
  ...{ cost: cost === null ? null : fromNano(toNano(cost)), ...tokens },
})

const plus = (one: number | null, other: number | null): number | null =>
  one === null ? other : other === null ? one : one + other

function added(sum: Amounts | null, { cost, inputTokens, outputTokens }: Amounts): Amounts {
  return {
    cost: plus(sum?.cost ?? null, cost),
    inputTokens: plus(sum?.inputTokens ?? null, inputTokens),
    outputTokens: plus(sum?.outputTokens ?? null, outputTokens),
  }
}

function kindOf({ invoiced, booked }: Pair, tolerance: Tolerance): DifferenceKind | null {
  if (invoiced === null) return isNothing(booked, tolerance) ? null : 'only_booked'
  if (booked === null) return isNothing(invoiced, tolerance) ? null : 'only_invoiced'
  const tokens = [
    differ(invoiced.inputTokens, booked.inputTokens, { share: tolerance.share, amount: 0 }),
    differ(invoiced.outputTokens, booked.outputTokens, { share: tolerance.share, amount: 0 }),
  ]
  const hasTokens = invoiced.inputTokens !== null || invoiced.outputTokens !== null
  if (tokens.includes(true)) return 'tokens'
  if (!differ(invoiced.cost, booked.cost, tolerance)) return null
  return hasTokens ? 'price' : 'amount'
}

/** Whether two known amounts differ by more than is tolerated. */
function differ(one: number | null, other: number | null, { share, amount }: Tolerance): boolean {
  if (one === null || other === null) return false
  const tolerated = Math.max(amount, share * Math.max(Math.abs(one), Math.abs(other)))
  return toNano(Math.abs(one - other)) > toNano(tolerated)
}

const isNothing = (amounts: Amounts | null, { amount }: Tolerance): boolean =>
  amounts === null ||
  (Math.abs(amounts.cost ?? 0) <= amount &&
    (amounts.cost !== null || (amounts.inputTokens ?? 0) + (amounts.outputTokens ?? 0) === 0))

/** By money where there is some, else by tokens, of which a million count as a dollar. */
function sizeOf({ invoiced, booked }: Pair): number {
  const money = Math.abs((invoiced?.cost ?? 0) - (booked?.cost ?? 0))
  const tokens = (amounts: Amounts | null) => (amounts?.inputTokens ?? 0) + (amounts?.outputTokens ?? 0)
  const isMoney = (invoiced === null || invoiced.cost !== null) && (booked === null || booked.cost !== null)
  return isMoney ? money : Math.abs(tokens(invoiced) - tokens(booked)) / 1_000_000
}
