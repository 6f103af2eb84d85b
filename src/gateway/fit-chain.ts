/** The policies that hold for this request, and whether its family has the stages they need (contract section 6). */
import type { Exchange, Gateway } from './exchange.ts'

export function fitChain(_exchange: Exchange, _gateway: Gateway): void {}
