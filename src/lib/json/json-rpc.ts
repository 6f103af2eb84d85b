import { type ExactNumber, isNumber } from './exact-json.ts'

/** JSON-RPC 2.0, section 5.1. Codes from -32000 on belong to the server. */
export const rpcCodes = {
  parseError: -32_700,
  invalidRequest: -32_600,
  methodNotFound: -32_601,
  invalidParams: -32_602,
  internalError: -32_603,
  refused: -32_000,
  /** MCP 2025-11-25, Elicitation: the person has to open an address first. */
  urlElicitationRequired: -32_042,
} as const

/** As MCP allows it: never null. */
export type RpcId = string | number | ExactNumber

export const isRpcId = (value: unknown): value is RpcId => typeof value === 'string' || isNumber(value)

/** What two equal ids have in common, and no others. */
export const rpcKey = (id: RpcId): string => JSON.stringify(id)
