/** What the commands about budgets, consumer groups and access policies share: the flags of rates and lists. */
import { numberOf } from '../../command/resource.ts'
import { readList } from '../tokens/token-scope.ts'

export const rateFlags = {
  'requests-per-minute': { type: 'string', description: 'The most requests a minute', valueHint: 'N' },
  'tokens-per-minute': { type: 'string', description: 'The most model tokens a minute', valueHint: 'N' },
} as const

/** Rates as the API takes them. Throws `usage` naming the flag. */
export const readRates = (flags: { readonly [Name in keyof typeof rateFlags]: string | undefined }) => ({
  requests_per_minute: numberOf(flags['requests-per-minute'], '--requests-per-minute'),
  tokens_per_minute: numberOf(flags['tokens-per-minute'], '--tokens-per-minute'),
})

/** The values of a repeatable flag, also where several stand in one with commas; undefined where it was not given. */
export const valuesOf = (flag: string, text: string | undefined): string[] | undefined =>
  text === undefined ? undefined : readList(flag, text)
