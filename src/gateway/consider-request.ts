/** What the policies say of the request, before anything is reserved or sent (contract section 7, pre_request). */
import type { Exchange, Gateway } from './exchange.ts'

export function considerRequest(_exchange: Exchange, _gateway: Gateway): void {}
