import { expect, test } from 'bun:test'
import { permissions, permissionsOf, roles, rolesWithin } from './permissions.ts'

test('no role for people may connect as a gateway, and the role runtime may do nothing else', () => {
  for (const role of roles) expect(permissionsOf([role]).has('runtime:connect')).toBe(role === 'runtime')
  expect([...permissionsOf(['runtime'])]).toEqual(['runtime:connect'])
})

test('owner and admin may do everything else', () => {
  const everything = permissions.filter((permission) => permission !== 'runtime:connect')
  expect([...permissionsOf(['owner'])]).toEqual(everything)
  expect([...permissionsOf(['admin'])]).toEqual(everything)
})

test('only owner and admin may make tokens; an operator may revoke them, an auditor only read', () => {
  const holders = (permission: (typeof permissions)[number]) =>
    roles.filter((role) => permissionsOf([role]).has(permission))
  expect(holders('tokens:write')).toEqual(['owner', 'admin'])
  expect(holders('tokens:revoke')).toEqual(['owner', 'admin', 'operator'])
  expect(holders('tokens:read')).toEqual(['owner', 'admin', 'operator', 'auditor', 'member'])
  expect(holders('events:export')).toEqual(['owner', 'admin', 'auditor'])
  expect(holders('gateway:invoke')).toEqual(['owner', 'admin', 'operator', 'member'])
})

test('combines the permissions of several roles', () => {
  expect(permissionsOf(['auditor', 'member'])).toEqual(
    new Set([...permissionsOf(['auditor']), ...permissionsOf(['member'])]),
  )
  expect(permissionsOf([]).size).toBe(0)
})

test('allows assigning only roles within one’s own, and owner only by an owner', () => {
  expect(rolesWithin(['owner'], ['owner', 'admin'])).toBe(true)
  expect(rolesWithin(['admin'], ['operator', 'auditor', 'member'])).toBe(true)
  expect(rolesWithin(['admin'], ['owner'])).toBe(false)
  expect(rolesWithin(['operator'], ['auditor'])).toBe(false)
  expect(rolesWithin([], ['member'])).toBe(false)
})
