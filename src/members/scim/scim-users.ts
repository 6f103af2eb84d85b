/** What SCIM does to people: each change is one transaction with its event; who is disabled loses everything at once. */
import { Failure } from '../../failure.ts'
import { changesOf, memberEvent, recordChange } from '../member-event.ts'
import { addUser, changeUser, findUser, findUserByEmail, hasOtherOwner, losesOwner } from '../people/stored-user.ts'
import type { UserRow } from '../people/user.ts'
import { revokeTokensOf } from '../revoke-tokens.ts'
import type { ScimCall } from './scim-caller.ts'
import { attributesOf, emailOf, nameOf, type StoredUser, type UserDocument } from './scim-documents.ts'
import { noSuch, ScimError, taken } from './scim-error.ts'
import {
  addScimUser,
  changeScimUser,
  findScimUser,
  isScimUser,
  nameKey,
  releaseUser,
  signedInAs,
} from './stored-scim.ts'

/** A person of the token's issuer. Throws 404, for one of another issuer too. */
export async function requireUser({ dependencies, provider }: ScimCall, id: string): Promise<StoredUser> {
  const row = await findScimUser(dependencies.ledger, provider.issuer, { attribute: 'id', value: id })
  if (row === null) throw noSuch('user')
  return row
}

/** Makes a person, or takes over the account by which the same person has signed in at the same provider. */
export async function createUser(call: ScimCall, document: UserDocument): Promise<string> {
  const { dependencies, provider } = call
  const { ledger, clock, newId, recorder } = dependencies
  await requireFreeNames(call, document, null)
  const [email, name, now] = [emailOf(document), nameOf(document), clock.now()]
  const known =
    document.externalId === undefined ? null : await signedInAs(ledger, provider.issuer, document.externalId)
  const account = known === null || (await isScimUser(ledger, known)) ? null : await findUser(ledger, known)
  await requireFreeEmail(call, email, account?.id ?? null)
  const scimRow = (userId: string) => ({
    ...{ userId, issuer: provider.issuer, ...storedFields(document), createdAt: now, updatedAt: now },
  })
  if (account !== null) {
    await changeAccount(call, account, { email, name, active: document.active }, [addScimUser(scimRow(account.id))])
    return account.id
  }
  const user = {
    ...{ id: newId(), email, name, role: provider.config.default_role ?? ('member' as const), createdAt: now },
    status: document.active === false ? ('disabled' as const) : ('active' as const),
  }
  const event = await memberEvent(dependencies, {
    type: 'member.created',
    ...call.actor,
    details: { user_id: user.id, role: user.role, status: user.status, identity_provider_id: provider.id },
  })
  await recordChange(recorder, { event, ledger: [...addUser(user), addScimUser(scimRow(user.id))] })
  return user.id
}

/** Gives a person what a document says; where it does not say whether they are active, that stays. */
export async function replaceUser(call: ScimCall, before: StoredUser, document: UserDocument): Promise<void> {
  const { ledger, clock } = call.dependencies
  await requireFreeNames(call, document, before.userId)
  const account = await findUser(ledger, before.userId)
  if (account === null) throw noSuch('user')
  const [email, name] = [emailOf(document), nameOf(document)]
  await requireFreeEmail(call, email, account.id)
  const after = storedFields(document)
  const isSame =
    after.userName === before.userName &&
    after.externalId === before.externalId &&
    after.attributes === before.attributes
  const stored = isSame ? [] : [changeScimUser(account.id, { ...after, updatedAt: clock.now() })]
  await changeAccount(call, account, { email, name, active: document.active }, stored)
}

/**
 * Ends a person's access for good and frees their e-mail address. The account stays, because events name it. A person
 * who is made later by the same name has an account of their own.
 */
export async function deleteUser(call: ScimCall, { userId }: StoredUser): Promise<void> {
  const { dependencies, provider } = call
  const account = await findUser(dependencies.ledger, userId)
  if (account === null) throw noSuch('user')
  const email = `${userId}@deleted.invalid`
  const release = releaseUser(provider.issuer, userId)
  await changeAccount(call, account, { email, name: account.name, active: false }, release)
}

const storedFields = (document: UserDocument) => ({
  userName: document.userName,
  userNameKey: nameKey(document.userName),
  externalId: document.externalId ?? null,
  attributes: attributesOf(document),
})

interface Wanted {
  email: string
  name: string
  active: boolean | undefined
}

async function changeAccount(
  { dependencies, provider, actor }: ScimCall,
  before: UserRow,
  { email, name, active }: Wanted,
  stored: Parameters<typeof recordChange>[1]['ledger'],
): Promise<void> {
  const { ledger, recorder, clock, delegations } = dependencies
  const status = active === undefined ? before.status : active ? 'active' : 'disabled'
  const after: UserRow = { ...before, email, name, status }
  const changes = changesOf(before, after, ['name', 'status'])
  const newEmail = after.email !== before.email
  if (stored.length > 0 || newEmail || Object.keys(changes).length > 0) {
    if (losesOwner(before, after) && !(await hasOtherOwner(ledger, before.id))) {
      throw new ScimError(409, null, 'This is the last active owner: make another one first')
    }
    const event = await memberEvent(dependencies, {
      type: 'member.updated',
      ...actor,
      details: {
        user_id: before.id,
        identity_provider_id: provider.id,
        changes: { ...changes, ...(newEmail ? { email: 'replaced' } : {}) },
      },
    })
    const marks = delegations.mark(before.id, clock.now(), status === 'disabled')
    await recordChange(recorder, { event, ledger: [...changeUser(before, after, false), ...stored, ...marks] })
  }
  // Also where they are disabled already: a repeat finishes what was interrupted.
  if (status === 'disabled') await revokeTokensOf(dependencies, actor, { userId: before.id })
  await delegations.follow(actor, before.id)
}

async function requireFreeNames(call: ScimCall, document: UserDocument, ownId: string | null): Promise<void> {
  const { ledger } = call.dependencies
  const { userName, externalId } = document
  const find = (attribute: string, value: string) => findScimUser(ledger, call.provider.issuer, { attribute, value })
  const named = await find('username', userName)
  if (named !== null && named.userId !== ownId) throw taken('Another user has this userName')
  const external = externalId === undefined ? null : await find('externalid', externalId)
  if (external !== null && external.userId !== ownId) throw taken('Another user has this externalId')
}

async function requireFreeEmail({ dependencies }: ScimCall, email: string, ownId: string | null): Promise<void> {
  const holder = await findUserByEmail(dependencies.ledger, email)
  if (holder === null || holder.id === ownId) return
  throw taken('Another account has this e-mail address: accounts are never joined by it')
}

const mostAttempts = 20
const pauseMilliseconds = 10

/**
 * Makes a change again where another one came between its reading and its writing: clients send members of one group
 * in several requests at once, and do not all repeat one that is refused.
 */
export async function again<Result>(change: () => Promise<Result>): Promise<Result> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await change()
    } catch (error) {
      const overtaken = error instanceof Failure && error.code === 'conflict'
      if (!overtaken || attempt === mostAttempts) throw error
      await Bun.sleep(Math.random() * pauseMilliseconds * attempt)
    }
  }
}
