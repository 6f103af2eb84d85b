/** What SCIM does to groups. A group is a team of its own; roles and teams follow it by the rules of the provider. */
import { Failure } from '../../failure.ts'
import type { Statement } from '../../store/statement.ts'
import { admitGroups } from '../identity-providers/claims.ts'
import { ProviderRefusal } from '../identity-providers/provider-refusal.ts'
import { provisionedGroups } from '../identity-providers/provisioned.ts'
import { followGroups } from '../identity-providers/take-in.ts'
import { memberEvent, recordChange } from '../member-event.ts'
import { findUser } from '../people/stored-user.ts'
import { revokeTokensOf } from '../revoke-tokens.ts'
import { endSessionsOf } from '../sessions/session.ts'
import { addTeam, changeTeamName, deleteTeam, findTeam, isInUse } from '../teams/stored-team.ts'
import type { ScimCall } from './scim-caller.ts'
import type { GroupDocument, StoredGroup } from './scim-documents.ts'
import { invalidValue, noSuch, ScimError, taken } from './scim-error.ts'
import {
  addScimGroup,
  changeMembers,
  changeScimGroup,
  findScimGroup,
  forgetScimGroup,
  hasTeamOfName,
  membersOfGroups,
  scimUsersAmong,
} from './stored-scim.ts'

/** How many people one request can put in or take out: each has tokens and a role that follow. */
export const mostMemberChanges = 1000

/** A group of the token's issuer. Throws 404, for one of another issuer too. */
export async function requireGroup({ dependencies, provider }: ScimCall, id: string): Promise<StoredGroup> {
  const row = await findScimGroup(dependencies.ledger, provider.issuer, { attribute: 'id', value: id })
  if (row === null) throw noSuch('group')
  return row
}

export async function createGroup(call: ScimCall, document: GroupDocument): Promise<string> {
  const { dependencies, provider, actor } = call
  const { recorder, clock, newId } = dependencies
  const [teamId, now] = [newId(), clock.now()]
  await requireFreeNames(call, document, null)
  const joined = await requireMembers(call, document)
  const name = document.displayName
  const event = await memberEvent(dependencies, {
    type: 'member.team_created',
    ...actor,
    teamId,
    details: { team_id: teamId, name, identity_provider_id: provider.id, joined_user_ids: joined },
  })
  const row = {
    teamId,
    issuer: provider.issuer,
    externalId: document.externalId ?? null,
    createdAt: now,
    updatedAt: now,
  }
  const team = [addTeam({ id: teamId, name, createdAt: now }), addScimGroup(row)]
  const ledger = [...team, ...changeMembers(teamId, { joined, left: [], now }), ...marks(call, joined)]
  await recordChange(recorder, { event, ledger })
  await followMembers(call, joined)
  return teamId
}

/** Gives a group what a document says; members stay where it says nothing about them. */
export async function replaceGroup(call: ScimCall, before: StoredGroup, document: GroupDocument): Promise<void> {
  const { dependencies, provider, actor } = call
  const { ledger, recorder, clock } = dependencies
  const { teamId } = before
  await requireFreeNames(call, document, before)
  const present = await memberIds(call, teamId)
  const wanted = document.members === null ? present : await requireMembers(call, document, present)
  const [wantedSet, presentSet] = [new Set(wanted), new Set(present)]
  const joined = wanted.filter((id) => !presentSet.has(id))
  const left = present.filter((id) => !wantedSet.has(id))
  requireFew(joined.length + left.length)
  const externalId = document.externalId ?? null
  const renamed = document.displayName !== before.displayName
  if (!renamed && externalId === before.externalId && joined.length + left.length === 0) return
  const team = await findTeam(ledger, teamId)
  if (team === null) throw noSuch('group')
  const now = clock.now()
  const event = await memberEvent(dependencies, {
    type: 'member.team_updated',
    ...actor,
    teamId,
    details: {
      ...{ team_id: teamId, identity_provider_id: provider.id, joined_user_ids: joined, left_user_ids: left },
      changes: renamed ? { name: { from: before.displayName, to: document.displayName } } : {},
    },
  })
  const changes: Statement[] = [
    ...changeScimGroup(before, { externalId, updatedAt: now }),
    ...(renamed ? changeTeamName(team, document.displayName) : []),
    ...changeMembers(teamId, { joined, left, now }),
    ...marks(call, [...joined, ...left]),
  ]
  await recordChange(recorder, { event, ledger: changes })
  for (const userId of left) await revokeTokensOf(dependencies, actor, { userId, teamId })
  // Rules name groups by name and external id, so a new one concerns everybody in it.
  const concerned = renamed || externalId !== before.externalId ? [...wanted, ...left] : [...joined, ...left]
  await followMembers(call, concerned)
}

/** Takes everybody of the provider out. A team that others are still in, or that has tokens, stays as a team by hand. */
export async function deleteGroup(call: ScimCall, { teamId }: StoredGroup): Promise<void> {
  const { dependencies, provider, actor } = call
  const { ledger, recorder, clock } = dependencies
  const left = await memberIds(call, teamId)
  const now = clock.now()
  const details = { team_id: teamId, identity_provider_id: provider.id, left_user_ids: left }
  const event = await memberEvent(dependencies, { type: 'member.team_updated', ...actor, teamId, details })
  const emptied = [...changeMembers(teamId, { joined: [], left, now }), forgetScimGroup(teamId), ...marks(call, left)]
  await recordChange(recorder, { event, ledger: emptied })
  for (const userId of left) await revokeTokensOf(dependencies, actor, { userId, teamId })
  await followMembers(call, left)
  const team = await findTeam(ledger, teamId)
  if (team === null || (await isInUse(ledger, teamId, clock.now()))) return
  const deleted = await memberEvent(dependencies, {
    type: 'member.team_deleted',
    ...actor,
    teamId,
    details: { team_id: teamId, name: team.name },
  })
  try {
    await recordChange(recorder, { event: deleted, ledger: deleteTeam(team, clock.now()) })
  } catch (error) {
    // Something came into the team meanwhile: it stays.
    if (!(error instanceof Failure) || error.code !== 'conflict') throw error
  }
}

const marks = ({ dependencies }: ScimCall, userIds: readonly string[]): Statement[] =>
  userIds.flatMap((id) => dependencies.delegations.mark(id, dependencies.clock.now()))

async function memberIds({ dependencies, provider }: ScimCall, teamId: string): Promise<string[]> {
  const members = await membersOfGroups(dependencies.ledger, provider.issuer, [teamId])
  return members(teamId).map(({ id }) => id)
}

/** The members that a document names, each once. Those of another issuer are refused as those that are not there. */
async function requireMembers(
  { dependencies, provider }: ScimCall,
  { members }: GroupDocument,
  present: readonly string[] = [],
): Promise<string[]> {
  const ids = [...new Set(members?.map(({ value }) => value))]
  const known = new Set(present)
  const unknown = ids.filter((id) => !known.has(id))
  requireFew(unknown.length)
  const found = await scimUsersAmong(dependencies.ledger, provider.issuer, unknown)
  const missing = unknown.find((id) => !found.has(id))
  if (missing !== undefined) throw invalidValue('members: one is no user of this provider; groups hold users alone')
  return ids
}

function requireFew(changed: number): void {
  if (changed <= mostMemberChanges) return
  throw new ScimError(413, null, `One request can put in and take out ${mostMemberChanges} members: send several`)
}

async function requireFreeNames(call: ScimCall, document: GroupDocument, before: StoredGroup | null): Promise<void> {
  const { ledger } = call.dependencies
  const { displayName, externalId } = document
  if (displayName !== before?.displayName && (await hasTeamOfName(ledger, displayName))) {
    throw taken('There is a team of this name already: rename it, or the group')
  }
  if (externalId === undefined) return
  const holder = await findScimGroup(ledger, call.provider.issuer, { attribute: 'externalid', value: externalId })
  if (holder !== null && holder.teamId !== before?.teamId) throw taken('Another group has this externalId')
}

/** What follows for people from the groups they are in now. */
async function followMembers(call: ScimCall, userIds: readonly string[]): Promise<void> {
  const { dependencies, actor } = call
  for (const userId of userIds) {
    await followRole(call, userId)
    await dependencies.delegations.follow(actor, userId)
  }
}

async function followRole({ dependencies, provider, actor }: ScimCall, userId: string): Promise<void> {
  const { ledger, recorder, clock, delegations } = dependencies
  const groups = await provisionedGroups(ledger, provider, userId)
  const user = groups === null ? null : await findUser(ledger, userId)
  if (groups === null || user === null) return
  const { requestId } = actor
  try {
    await followGroups(dependencies, provider, { user, admission: admitGroups(provider.config, groups), requestId })
  } catch (error) {
    if (!(error instanceof ProviderRefusal)) throw error
    const governedTeamIds = [...new Set(provider.config.groups.flatMap(({ team_ids }) => team_ids))]
    const none = { role: 'member' as const, governsRole: true, teamIds: [], governedTeamIds }
    await followGroups(dependencies, provider, { user, admission: none, requestId })
    const event = await memberEvent(dependencies, {
      ...{ type: 'auth.identity_lost', refused: `identity.${error.reason}`, ...actor },
      details: { user_id: userId, identity_provider_id: provider.id },
    })
    await recordChange(recorder, {
      event,
      ledger: [...endSessionsOf(userId), ...delegations.mark(userId, clock.now(), true)],
    })
  }
}
