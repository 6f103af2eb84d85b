import { expect, test } from 'bun:test'
import { admit } from './claims.ts'
import { newProviderBody } from './identity-provider-resource.ts'
import { ProviderRefusal } from './provider-refusal.ts'

const provider = (issuer: string, config: object) => {
  const {
    name: _n,
    issuer: _i,
    client_id: _c,
    enabled: _e,
    client_secret: _s,
    ...parsed
  } = newProviderBody.parse({
    ...{ name: 'x', issuer, client_id: 'x', default_role: 'member', ...config },
  })
  return { issuer, config: parsed }
}
const reasonOf = (of: ReturnType<typeof provider>, claims: object): string | null => {
  try {
    admit(of, { sub: 's', ...claims }, null)
    return null
  } catch (error) {
    if (error instanceof ProviderRefusal) return error.reason
    throw error
  }
}

test('at Google the hosted domain decides, whatever the address says', () => {
  const google = provider('https://accounts.google.com', { domains: ['example.com'] })
  const email = { email: 'ann@example.com', email_verified: true }
  expect(reasonOf(google, { ...email, hd: 'example.com' })).toBeNull()
  expect(reasonOf(google, { ...email, hd: 'EXAMPLE.COM' })).toBeNull()
  expect(reasonOf(google, email)).toBe('domain_not_allowed')
  expect(reasonOf(google, { ...email, hd: 'evil.test' })).toBe('domain_not_allowed')
  expect(reasonOf(google, { ...email, hd: ['example.com'] })).toBe('domain_not_allowed')
})

test('elsewhere a claim of that name says nothing', () => {
  const other = provider('https://id.example.com', { domains: ['example.com'] })
  expect(reasonOf(other, { email: 'eve@evil.test', email_verified: true, hd: 'example.com' })).toBe(
    'domain_not_allowed',
  )
})

test('takes an unsaid verification only where the record says so, and a denied one never', () => {
  const config = { domains: ['example.com'], accept_unverified_email: true }
  const entra = provider('https://login.microsoftonline.com/6babcaad-604b-40ac-a9d7-9fd97c0b779f/v2.0', config)
  expect(reasonOf(entra, { email: 'ann@example.com' })).toBeNull()
  expect(reasonOf(entra, { email: 'ann@example.com', email_verified: false })).toBe('email_unverified')
  expect(reasonOf(entra, { email: 'ann@example.com', email_verified: 'false' })).toBe('email_unverified')
})

test('finds groups by the whole name of the claim before the path, and takes one group as text', () => {
  const rules = { default_role: null, groups: [{ group: 'ops', role: 'operator' }] }
  const namespaced = provider('https://id.example.com', { ...rules, groups_claim: 'https://example.com/groups' })
  expect(reasonOf(namespaced, { 'https://example.com/groups': ['ops'] })).toBeNull()
  const nested = provider('https://id.example.com', { ...rules, groups_claim: 'realm_access.roles' })
  expect(reasonOf(nested, { realm_access: { roles: ['ops'] } })).toBeNull()
  expect(reasonOf(nested, { realm_access: { roles: 'ops' } })).toBeNull()
  for (const odd of [null, 7, {}, [7], [['ops']], [null]]) {
    expect(reasonOf(nested, { realm_access: { roles: odd } })).toBe('no_role')
  }
  expect(reasonOf(provider('https://id.example.com', { ...rules, groups_claim: 'constructor.name' }), {})).toBe(
    'no_role',
  )
})

test('the first fitting rule with a role decides, and all fitting rules give teams', () => {
  const [one, two] = ['0190a2b4-0000-7000-8000-000000000001', '0190a2b4-0000-7000-8000-000000000002']
  const rules = provider('https://id.example.com', {
    groups: [
      { group: 'a', team_ids: [one] },
      { group: 'b', role: 'auditor', team_ids: [one, two] },
      { group: 'c', role: 'admin' },
    ],
  })
  expect(admit(rules, { sub: 's', groups: ['c', 'b', 'a'] }, null)).toEqual({
    ...{ role: 'auditor', governsRole: true },
    ...{ teamIds: [one, two], governedTeamIds: [one, two] },
  })
  expect(admit(rules, { sub: 's', groups: ['a'] }, null)).toMatchObject({ role: 'member', teamIds: [one] })
})
