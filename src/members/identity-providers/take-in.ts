/**
 * Takes a person in whom a provider vouches for: finds or makes their account and has role and teams follow their
 * groups. An account belongs to an issuer and a subject. An e-mail address links nothing: whoever runs another provider
 * could write any address there.
 */
import { eq, sql } from 'drizzle-orm'
import { anonymous, type Principal } from '../../identity/principal.ts'
import { guard, hasRow, insert, remove, statement } from '../../store/query.ts'
import { memberships, userIdentities } from '../../store/schema/ledger/people.ts'
import type { MemberDependencies } from '../dependencies.ts'
import { changesOf, memberEvent, recordChange } from '../member-event.ts'
import {
  addUser,
  changeUser,
  findUser,
  findUserByEmail,
  hasOtherOwner,
  losesOwner,
  teamsOfUsers,
} from '../people/stored-user.ts'
import type { UserRow } from '../people/user.ts'
import { displayName } from '../people/user-resource.ts'
import { revokeTokensOf } from '../revoke-tokens.ts'
import { type Admission, admit, verifiedEmail } from './claims.ts'
import { ProviderRefusal } from './provider-refusal.ts'
import { provisionedGroups, provisionedPerson } from './provisioned.ts'
import type { Vouched } from './relying-party.ts'
import {
  addIdentity,
  findIdentity,
  type IdentityRow,
  type KnownProvider,
  renewIdentity,
  sealRefreshToken,
} from './stored-identity-provider.ts'

/** How long sessions go on where a provider that can be asked again does not answer. */
const outageMilliseconds = 3600_000

export interface TakenIn {
  user: UserRow
  identityId: string
}

interface Taking {
  vouched: Vouched
  /** The person who signs in at the provider to be linked to it; null: whoever the identity belongs to. */
  linkTo: string | null
  requestId: string
}

/** Throws `ProviderRefusal` where the person may not come in. */
export async function takeIn(
  dependencies: MemberDependencies,
  provider: KnownProvider,
  { vouched, linkTo, requestId }: Taking,
): Promise<TakenIn> {
  const { ledger } = dependencies
  const known = await findIdentity(ledger, provider.issuer, vouched.subject)
  const external = externalIdOf(provider, vouched)
  const toLink = known === null ? (linkTo ?? (await provisionedPerson(ledger, provider, external))) : null
  const groups = await provisionedGroups(ledger, provider, known?.userId ?? toLink)
  const admission = admit(provider, vouched.claims, groups)
  if (known === null) {
    const person = toLink === null ? null : await findUser(ledger, toLink)
    if (person?.status === 'disabled') throw new ProviderRefusal('account_disabled', 'The account is disabled')
    return person === null
      ? await newPerson(dependencies, provider, { vouched, admission, requestId })
      : await linkPerson(dependencies, provider, { person, vouched, admission, requestId })
  }
  if (linkTo !== null && linkTo !== known.userId) {
    throw new ProviderRefusal('identity_taken', 'The identity belongs to another account')
  }
  const user = await findUser(ledger, known.userId)
  if (user?.status !== 'active') throw new ProviderRefusal('account_disabled', 'The account is disabled')
  const standing = standingOf(dependencies, provider, known, vouched)
  await ledger.write([renewIdentity(known.id, { ...standing, externalId: external, lostAt: null })])
  await followGroups(dependencies, provider, { user, admission, requestId })
  const followed = await findUser(ledger, known.userId)
  return { user: followed ?? user, identityId: known.id }
}

/** How SCIM names the person whom a provider vouches for; null where the claim is missing. */
function externalIdOf({ config }: KnownProvider, { claims, subject }: Vouched): string | null {
  if (config.external_id_claim === 'sub') return subject
  const value = claims[config.external_id_claim]
  return typeof value === 'string' && value !== '' ? value : null
}

/** What a provider's word changes of an identity: until when it holds, and when it is asked for again. */
export function standingOf(
  { clock, masterKey }: Pick<MemberDependencies, 'clock' | 'masterKey'>,
  { config }: Pick<KnownProvider, 'config'>,
  { id, refreshToken }: Pick<IdentityRow, 'id' | 'refreshToken'>,
  vouched: Pick<Vouched, 'refreshToken'>,
): Pick<IdentityRow, 'refreshToken' | 'vouchedUntil' | 'checkAt' | 'lastSignInAt'> {
  const now = clock.now()
  // Google gives a refresh token once: the one of an earlier sign-in holds.
  const sealed = vouched.refreshToken === null ? refreshToken : sealRefreshToken(masterKey, id, vouched.refreshToken)
  const checkAt = sealed === null ? null : now + config.recheck_seconds * 1000
  const vouchedUntil = checkAt === null ? now + config.unchecked_session_seconds * 1000 : checkAt + outageMilliseconds
  return { refreshToken: sealed, vouchedUntil, checkAt, lastSignInAt: now }
}

interface Newcomer {
  vouched: Vouched
  admission: Admission
  requestId: string
}

const newIdentity = (
  dependencies: MemberDependencies,
  provider: KnownProvider,
  userId: string,
  vouched: Vouched,
): IdentityRow => {
  const id = dependencies.newId()
  return {
    ...{ id, userId, issuer: provider.issuer, subject: vouched.subject, lostAt: null },
    externalId: externalIdOf(provider, vouched),
    createdAt: dependencies.clock.now(),
    ...standingOf(dependencies, provider, { id, refreshToken: null }, vouched),
  }
}

async function newPerson(
  dependencies: MemberDependencies,
  provider: KnownProvider,
  { vouched, admission, requestId }: Newcomer,
): Promise<TakenIn> {
  const { ledger, recorder, clock, newId } = dependencies
  const email = verifiedEmail(vouched.claims, provider.config)
  const taken = new ProviderRefusal('account_exists', 'Another account has this e-mail address')
  if ((await findUserByEmail(ledger, email)) !== null) throw taken
  const name = displayName.safeParse(vouched.claims.name)
  const now = clock.now()
  const user: UserRow = {
    ...{ id: newId(), email, name: name.success ? name.data : email, role: admission.role, status: 'active' },
    ...{ passwordHash: null, totpSecret: null, totpSince: null, totpStep: 0, createdAt: now, version: 1 },
  }
  const identity = newIdentity(dependencies, provider, user.id, vouched)
  const event = await memberEvent(dependencies, {
    type: 'member.created',
    principal: providerPrincipal(provider),
    requestId,
    details: { user_id: user.id, role: user.role, identity_provider_id: provider.id, team_ids: admission.teamIds },
  })
  await recordChange(recorder, {
    event,
    ledger: [
      ...addUser(user),
      addIdentity(identity),
      ...admission.teamIds.map((teamId) =>
        statement(insert(memberships).values({ teamId, userId: user.id, createdAt: now })),
      ),
    ],
  })
  return { user, identityId: identity.id }
}

async function linkPerson(
  dependencies: MemberDependencies,
  provider: KnownProvider,
  { person, vouched, admission, requestId }: Newcomer & { person: UserRow },
): Promise<TakenIn> {
  const identity = newIdentity(dependencies, provider, person.id, vouched)
  const event = await memberEvent(dependencies, {
    type: 'auth.identity_linked',
    principal: providerPrincipal(provider),
    requestId,
    details: { user_id: person.id, identity_provider_id: provider.id },
  })
  const unlinked = guard(
    sql`not ${hasRow(userIdentities, sql`${eq(userIdentities.issuer, provider.issuer)} and ${eq(userIdentities.subject, vouched.subject)}`)}`,
  )
  await recordChange(dependencies.recorder, { event, ledger: [unlinked, addIdentity(identity)] })
  await followGroups(dependencies, provider, { user: person, admission, requestId })
  return { user: (await findUser(dependencies.ledger, person.id)) ?? person, identityId: identity.id }
}

/** Who makes the changes that follow from a provider's word, as events name it. */
export const providerPrincipal = ({ id }: Pick<KnownProvider, 'id'>): Principal => ({
  ...anonymous,
  name: `identity-provider:${id}`,
})

/**
 * Gives a person the role and the teams that their groups give, where groups give any. The last active owner keeps that role: otherwise
 * nobody could mend the mapping. Teams that no rule names are not the provider's to decide.
 */
export async function followGroups(
  dependencies: MemberDependencies,
  provider: KnownProvider,
  { user, admission, requestId }: { user: UserRow; admission: Admission; requestId: string },
): Promise<void> {
  const { ledger, recorder, clock, delegations } = dependencies
  const wanted = admission.governsRole ? { ...user, role: admission.role } : user
  const keepsOwner = losesOwner(user, wanted) && !(await hasOtherOwner(ledger, user.id))
  const after = keepsOwner ? user : wanted
  const present = (await teamsOfUsers(ledger, [user.id])).get(user.id) ?? []
  const joined = admission.teamIds.filter((id) => !present.includes(id))
  const left = present.filter((id) => admission.governedTeamIds.includes(id) && !admission.teamIds.includes(id))
  const changes = changesOf(user, after, ['role'])
  if (Object.keys(changes).length === 0 && joined.length === 0 && left.length === 0) return
  const principal = providerPrincipal(provider)
  const event = await memberEvent(dependencies, {
    type: 'member.updated',
    principal,
    requestId,
    details: { user_id: user.id, changes, joined_team_ids: joined, left_team_ids: left },
  })
  const now = clock.now()
  await recordChange(recorder, {
    event,
    ledger: [
      ...changeUser(user, after, false),
      ...joined.map((teamId) => statement(insert(memberships).values({ teamId, userId: user.id, createdAt: now }))),
      ...left.map((teamId) =>
        statement(
          remove(memberships).where(sql`${eq(memberships.teamId, teamId)} and ${eq(memberships.userId, user.id)}`),
        ),
      ),
      ...delegations.mark(user.id, now),
    ],
  })
  const actor = { principal, requestId }
  for (const teamId of left) await revokeTokensOf(dependencies, actor, { userId: user.id, teamId })
  await delegations.follow(actor, user.id)
}
