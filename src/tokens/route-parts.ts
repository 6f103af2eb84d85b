/** What the token routes have in common. */
import { z } from 'zod'
import { entityTag } from '../api/entity-tag.ts'
import type { Call } from '../api/route.ts'
import type { Actor } from './creation/minting.ts'
import type { TokenRecord } from './record.ts'
import type { StoredToken } from './stored-token.ts'

export type ToRecord = (token: StoredToken) => Promise<TokenRecord>
export type ToRecords = (tokens: readonly StoredToken[]) => Promise<TokenRecord[]>

export const idParams = z.strictObject({ id: z.uuid() })
export const tokenValue = z.string().describe('The secret: shown in this answer and never again')

export const actorOf = ({ principal, requestId }: Call<unknown, unknown, unknown>): Actor => ({ principal, requestId })

export const etag = ({ version }: TokenRecord): { etag: string } => ({ etag: entityTag(version) })
