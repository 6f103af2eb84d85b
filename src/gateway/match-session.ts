/** The session that a request belongs to: `session_id` of the body or `x-session-id`, which must agree (contract section 6). */
import type { Exchange, Gateway } from './exchange.ts'

export function matchSession(_exchange: Exchange, _gateway: Gateway): void {}
