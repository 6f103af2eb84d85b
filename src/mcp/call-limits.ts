/**
 * What calls to one MCP server cost, and how many of them a minute may carry, compiled once from the server's record.
 * A limit of the server counts every request that is sent to it; that of a tool counts its calls. Only calls of tools
 * have a price: that of the tool, otherwise that of the server.
 */
import { z } from 'zod'
import { serverRateAccount, toolRateAccount } from '../store/limit-rows.ts'

/** A limit a minute that a call takes one slot of (usage/rate/README.md). */
interface CallRate {
  readonly account: string
  readonly slots: 1
  readonly least: 1
  readonly limit: number
}

interface CallTerms {
  /** Nano-dollars. */
  readonly price: number
  readonly rates: CallRate[]
}

export interface CallLimits {
  /** The terms of a call of this tool, by the server's own name; null for a request that calls no tool. */
  of(tool: string | null): CallTerms
}

/** By tool: the price of a call in nano-dollars, and the most calls a minute. */
export const toolLimitsSchema = z.record(
  z.string(),
  z.object({ price_per_call: z.number().nullable(), requests_per_minute: z.number().nullable() }),
)

interface StoredLimits {
  readonly id: string
  /** Nano-dollars. */
  readonly pricePerCall: number | null
  readonly requestsPerMinute: number | null
  /** JSON of `toolLimitsSchema`. */
  readonly toolLimits: string | null
}

/** Null for a server without prices and limits: then its calls cost nothing to check. */
export function callLimitsOf({ id, pricePerCall, requestsPerMinute, toolLimits }: StoredLimits): CallLimits | null {
  if (pricePerCall === null && requestsPerMinute === null && toolLimits === null) return null
  const common = rateOf(serverRateAccount(id), requestsPerMinute)
  const price = pricePerCall ?? 0
  const tools = new Map(
    Object.entries(toolLimitsSchema.parse(JSON.parse(toolLimits ?? '{}'))).map(([tool, own]): [string, CallTerms] => [
      tool,
      {
        price: own.price_per_call ?? price,
        rates: [...common, ...rateOf(toolRateAccount(id, tool), own.requests_per_minute)],
      },
    ]),
  )
  const otherTool: CallTerms = { price, rates: common }
  const noTool: CallTerms = { price: 0, rates: common }
  return { of: (tool) => (tool === null ? noTool : (tools.get(tool) ?? otherTool)) }
}

const rateOf = (account: string, limit: number | null): CallRate[] =>
  limit === null ? [] : [{ account, slots: 1, least: 1, limit }]
