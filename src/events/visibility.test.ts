import { expect, test } from 'bun:test'
import { permissionsOf, type Role } from '../identity/permissions.ts'
import { anonymous, type Principal } from '../identity/principal.ts'
import { covers, type Visibility, visibilityOf } from './visibility.ts'

interface Case {
  who: string
  principal: Partial<Principal> & { roles: readonly Role[] }
  sees: Visibility
}

const everything: Visibility = { teams: 'every', ownTokens: [] }
const only = (...teams: string[]): Visibility => ({ teams, ownTokens: [] })
const own = (...ownTokens: string[]): Visibility => ({ teams: [], ownTokens })

const cases: Case[] = [
  { who: 'a token of a team', principal: { kind: 'token', teamId: 't', roles: ['auditor'] }, sees: only('t') },
  { who: "an owner's token of a team", principal: { kind: 'token', teamId: 't', roles: ['owner'] }, sees: only('t') },
  {
    who: 'a token of a team and a user',
    principal: { kind: 'token', teamId: 't', userId: 'u', roles: ['operator'] },
    sees: only('t'),
  },
  {
    who: 'a token of a user',
    principal: { kind: 'token', userId: 'u', roles: ['operator'] },
    sees: only('of-user-1', 'of-user-2'),
  },
  {
    who: "an owner's token of a user",
    principal: { kind: 'token', userId: 'u', roles: ['owner'] },
    sees: only('of-user-1', 'of-user-2'),
  },
  { who: 'an unbound token of an owner', principal: { kind: 'token', roles: ['owner'] }, sees: everything },
  { who: 'an unbound token of an admin', principal: { kind: 'token', roles: ['admin'] }, sees: everything },
  { who: 'an unbound token of an auditor', principal: { kind: 'token', roles: ['auditor'] }, sees: everything },
  {
    who: 'an unbound token of an operator',
    principal: { kind: 'token', tokenId: 'o', roles: ['operator'] },
    sees: own('o'),
  },
  {
    who: 'an unbound token of a member',
    principal: { kind: 'token', tokenId: 'm', roles: ['member'] },
    sees: own('m'),
  },
  { who: "an owner's session", principal: { kind: 'session', userId: 'u', roles: ['owner'] }, sees: everything },
  { who: "an admin's session", principal: { kind: 'session', userId: 'u', roles: ['admin'] }, sees: everything },
  { who: "an auditor's session", principal: { kind: 'session', userId: 'u', roles: ['auditor'] }, sees: everything },
  {
    who: "a member's session",
    principal: { kind: 'session', userId: 'u', roles: ['member'] },
    sees: only('of-user-1', 'of-user-2'),
  },
  { who: "a gateway's session", principal: { kind: 'runtime', roles: ['runtime'] }, sees: only() },
  { who: 'nobody', principal: { kind: 'anonymous', roles: [] }, sees: only() },
]

test.each(cases)('$who sees the events that the README states', ({ principal, sees }) => {
  const teams = principal.userId === undefined ? [] : ['of-user-1', 'of-user-2']
  expect(visibilityOf({ ...anonymous, ...principal }, { teams, tokens: [] })).toEqual(sees)
})

test("a token whose user is in no team sees its own events, and the user's session those of all the user's tokens", () => {
  const person: Principal = { ...anonymous, kind: 'session', userId: 'u', roles: ['member'] }
  const ofUser = { teams: [], tokens: ['x', 'y'] }
  expect(visibilityOf({ ...person, kind: 'token', tokenId: 'x' }, ofUser)).toEqual(own('x'))
  expect(visibilityOf(person, ofUser)).toEqual(own('x', 'y'))
})

test.each<[present: Visibility, made: Visibility, covered: boolean]>([
  [only('a', 'b'), only('b'), true],
  [only('a'), only('a', 'b'), false],
  [only(), only(), true],
  [only('a'), everything, false],
  [everything, only('a'), true],
  [everything, own('t'), true],
  [own('t'), own('t'), true],
  [own('t'), own('u'), false],
  [own('t', 'u'), own('u'), true],
  [own('t'), only('a'), false],
  [only('a'), own('t'), false],
  [everything, { ...only('a'), withheld: true }, false],
  [{ ...everything, withheld: true }, { ...only('a'), withheld: true }, true],
  [{ ...only('a'), withheld: true }, only('a'), true],
])('who sees %j may have what was gathered for %j: %p', (present, made, covered) => {
  expect(covers(present, made)).toBe(covered)
})

test.each<[Role, true | undefined]>([
  ['owner', true],
  ['operator', true],
  ['auditor', true],
  ['member', undefined],
])('a token with the role %s sees what a policy withheld: %p', (role, withheld) => {
  const roles = [role]
  const principal: Principal = { ...anonymous, kind: 'token', tokenId: 't', roles, permissions: permissionsOf(roles) }
  const ofUser = { teams: [], tokens: [] }
  expect(visibilityOf(principal, ofUser).withheld).toBe(withheld)
  expect(visibilityOf({ ...principal, teamId: 'team' }, ofUser).withheld).toBe(withheld)
})
