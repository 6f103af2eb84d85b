/** What the token routes have in common. */
import { z } from 'zod'
import type { TokenRecord } from './record.ts'
import type { StoredToken } from './stored-token.ts'

export type ToRecord = (token: StoredToken) => Promise<TokenRecord>
export type ToRecords = (tokens: readonly StoredToken[]) => Promise<TokenRecord[]>

export const idParams = z.strictObject({ id: z.uuid() })
export const tokenValue = z.string().describe('The secret: shown in this answer and never again')
