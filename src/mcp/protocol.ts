/** What both sides of the gateway go by, towards callers and towards servers (Model Context Protocol). */
import type { Json } from './connection.ts'

/** The versions of the protocol that are spoken, the newest first. */
export const protocolVersions = ['2025-11-25', '2025-06-18'] as const

/** What a server may ask of a caller, by the capability that the caller must have declared. */
export const askable: ReadonlyMap<string, string> = new Map([
  ['sampling/createMessage', 'sampling'],
  ['elicitation/create', 'elicitation'],
  ['roots/list', 'roots'],
])

const passable: ReadonlySet<string> = new Set(askable.values())

/** Those capabilities of a caller that a server can make use of through the gateway. */
export const passableOf = (capabilities: Json): Json =>
  Object.fromEntries(Object.entries(capabilities).filter(([name]) => passable.has(name)))

export const isJson = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !JSON.isRawJSON(value)
