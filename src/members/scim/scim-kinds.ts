/** What SCIM does with people and with groups: the routes are the same for both (scim-routes.ts). */
import type { Database } from '../../store/open.ts'
import type { ScimCall } from './scim-caller.ts'
import {
  type GroupDocument,
  groupResource,
  groupShape,
  readGroup,
  readUser,
  type StoredGroup,
  type StoredUser,
  type UserDocument,
  userDocumentOf,
  userResource,
  userShape,
} from './scim-documents.ts'
import { createGroup, deleteGroup, replaceGroup, requireGroup } from './scim-groups.ts'
import type { Document, Shape } from './scim-patch.ts'
import { createUser, deleteUser, replaceUser, requireUser } from './scim-users.ts'
import { groupsOfUsers, listScimGroups, listScimUsers, membersOfGroups, type Page } from './stored-scim.ts'

export interface ScimKind<Row, Sent> {
  readonly path: '/Users' | '/Groups'
  readonly many: string
  readonly one: string
  /** What its deletion does. */
  readonly ending: string
  readonly shape: Shape
  /** Reads a document. `whole`: what it leaves out is unassigned (RFC 7644 section 3.5.1). */
  read(body: object, whole: boolean): Sent
  list(ledger: Database, issuer: string, page: Page): Promise<{ rows: readonly Row[]; total: number }>
  /** Throws a SCIM error if the provider has none of this id. */
  find(call: ScimCall, id: string): Promise<Row>
  /** The resources of rows, with the attributes that the caller asked for. */
  shown(call: ScimCall, shows: (name: string) => boolean, rows: readonly Row[]): Promise<Document[]>
  documentOf(call: ScimCall, row: Row): Promise<Document> | Document
  /** Returns the id. */
  create(call: ScimCall, sent: Sent): Promise<string>
  replace(call: ScimCall, before: Row, sent: Sent): Promise<void>
  end(call: ScimCall, row: Row): Promise<void>
}

const chosen = (resource: Document, shows: (name: string) => boolean): Document =>
  Object.fromEntries(Object.entries(resource).filter(([name]) => shows(name)))

export const people: ScimKind<StoredUser, UserDocument> = {
  ...{ path: '/Users', many: 'people', one: 'a person', ending: 'Ends the access of a person', shape: userShape },
  ...{ read: readUser, list: listScimUsers, find: requireUser },
  ...{ create: createUser, replace: replaceUser, end: deleteUser },
  async shown({ dependencies, provider, base }, shows, rows) {
    const ids = shows('groups') ? rows.map(({ userId }) => userId) : []
    const groupsOf = await groupsOfUsers(dependencies.ledger, provider.issuer, ids)
    return rows.map((row) => chosen(userResource(row, groupsOf(row.userId), base), shows))
  },
  documentOf: (_call, row) => userDocumentOf(row),
}

export const groups: ScimKind<StoredGroup, GroupDocument> = {
  ...{ path: '/Groups', many: 'groups', one: 'a group', ending: 'Deletes a group', shape: groupShape },
  ...{ list: listScimGroups, find: requireGroup },
  ...{ create: createGroup, replace: replaceGroup, end: deleteGroup },
  read(body, whole) {
    const document = readGroup(body)
    return whole ? { ...document, members: document.members ?? [] } : document
  },
  async shown({ dependencies, provider, base }, shows, rows) {
    const ids = shows('members') ? rows.map(({ teamId }) => teamId) : []
    const membersOf = await membersOfGroups(dependencies.ledger, provider.issuer, ids)
    return rows.map((row) => chosen(groupResource(row, membersOf(row.teamId), base), shows))
  },
  async documentOf({ dependencies, provider }, { displayName, externalId, teamId }) {
    const members = await membersOfGroups(dependencies.ledger, provider.issuer, [teamId])
    return {
      ...(externalId === null ? {} : { externalId }),
      displayName,
      members: members(teamId).map(({ id }) => ({ value: id })),
    }
  },
}
