/**
 * The queries of device codes. Every step is one transaction on the ledger, which all control planes share: a code is
 * decided once, whichever of them a person and a device talk to, and a process that dies leaves it as it was.
 */
import { and, eq, gt, isNull, lt } from 'drizzle-orm'
import { hashSecret } from '../../identity/secret.ts'
import type { Database } from '../../store/open.ts'
import { guard, hasRow, insert, query, remove, statement, update } from '../../store/query.ts'
import { oauthDeviceCodes } from '../../store/schema/ledger/oauth.ts'
import type { Statement } from '../../store/statement.ts'
import { hashUserCode } from './user-code.ts'

export type DeviceCode = typeof oauthDeviceCodes.$inferSelect
export type NewDeviceCode = typeof oauthDeviceCodes.$inferInsert

/** How long a code is kept after its end, so that a device which asks late is told that it has expired. */
const memoryMilliseconds = 24 * 3600_000

/** Makes a code, and takes away those that ended long ago. */
export const addDeviceCode = (code: NewDeviceCode): Statement[] => [
  statement(remove(oauthDeviceCodes).where(lt(oauthDeviceCodes.expiresAt, code.createdAt - memoryMilliseconds))),
  statement(insert(oauthDeviceCodes).values(code)),
]

/** How many codes were made for an address since an instant. */
export const countSince = (ledger: Database, addressKey: string, since: number): Promise<number> =>
  query(ledger).$count(
    oauthDeviceCodes,
    and(eq(oauthDeviceCodes.addressKey, addressKey), gt(oauthDeviceCodes.createdAt, since)),
  )

export const findDeviceCode = async (ledger: Database, secret: string): Promise<DeviceCode | null> =>
  (await query(ledger)
    .select()
    .from(oauthDeviceCodes)
    .where(eq(oauthDeviceCodes.hash, hashSecret(secret)))
    .get()) ?? null

const isPending = (now: number) => and(isNull(oauthDeviceCodes.decision), gt(oauthDeviceCodes.expiresAt, now))

/** The code that waits for a person's answer; null if there is none. */
export const findPending = async (ledger: Database, userCode: string, now: number): Promise<DeviceCode | null> =>
  (await query(ledger)
    .select()
    .from(oauthDeviceCodes)
    .where(and(eq(oauthDeviceCodes.userCodeHash, hashUserCode(userCode)), isPending(now)))
    .get()) ?? null

/** Notes that the device has asked, and how long it waits from now on. */
export const notePoll = ({ hash }: DeviceCode, polledAt: number, intervalSeconds: number): Statement =>
  statement(update(oauthDeviceCodes).set({ polledAt, intervalSeconds }).where(eq(oauthDeviceCodes.hash, hash)))

/** The person's answer, in a transaction that fails where the code was answered or has expired. */
export function decide({ hash }: DeviceCode, decision: 'approved' | 'denied', now: number): Statement[] {
  const isOpen = and(eq(oauthDeviceCodes.hash, hash), isPending(now))
  return [
    guard(hasRow(oauthDeviceCodes, isOpen)),
    statement(update(oauthDeviceCodes).set({ decision }).where(eq(oauthDeviceCodes.hash, hash))),
  ]
}
