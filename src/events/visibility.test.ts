import { expect, test } from 'bun:test'
import type { Role } from '../tokens/permissions.ts'
import { anonymous, type Principal } from '../tokens/principal.ts'
import { covers, type Visibility, visibilityOf } from './visibility.ts'

interface Case {
  who: string
  principal: Partial<Principal> & { roles: readonly Role[] }
  sees: Visibility
}

const every = (withoutTeam: boolean): Visibility => ({ teams: 'every', withoutTeam })
const only = (...teams: string[]): Visibility => ({ teams, withoutTeam: false })

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
  { who: 'an unbound token of an owner', principal: { kind: 'token', roles: ['owner'] }, sees: every(false) },
  { who: 'an unbound token of an admin', principal: { kind: 'token', roles: ['admin'] }, sees: every(false) },
  { who: 'an unbound token of an auditor', principal: { kind: 'token', roles: ['auditor'] }, sees: every(false) },
  { who: 'an unbound token of an operator', principal: { kind: 'token', roles: ['operator'] }, sees: only() },
  { who: 'an unbound token of a member', principal: { kind: 'token', roles: ['member'] }, sees: only() },
  { who: "an owner's session", principal: { kind: 'session', userId: 'u', roles: ['owner'] }, sees: every(true) },
  { who: "an admin's session", principal: { kind: 'session', userId: 'u', roles: ['admin'] }, sees: every(true) },
  { who: "an auditor's session", principal: { kind: 'session', userId: 'u', roles: ['auditor'] }, sees: every(false) },
  {
    who: "a member's session",
    principal: { kind: 'session', userId: 'u', roles: ['member'] },
    sees: only('of-user-1', 'of-user-2'),
  },
  { who: "a gateway's session", principal: { kind: 'runtime', roles: ['runtime'] }, sees: only() },
  { who: 'nobody', principal: { kind: 'anonymous', roles: [] }, sees: only() },
]

test.each(cases)('$who sees what the contract says', ({ principal, sees }) => {
  const teams = principal.userId === undefined ? [] : ['of-user-1', 'of-user-2']
  expect(visibilityOf({ ...anonymous, ...principal }, teams)).toEqual(sees)
})

test.each<[present: Visibility, made: Visibility, covered: boolean]>([
  [only('a', 'b'), only('b'), true],
  [only('a'), only('a', 'b'), false],
  [only(), only(), true],
  [only('a'), every(false), false],
  [every(false), only('a'), true],
  [every(false), every(true), false],
  [every(true), every(false), true],
])('who sees %j may have what was gathered for %j: %p', (present, made, covered) => {
  expect(covers(present, made)).toBe(covered)
})
