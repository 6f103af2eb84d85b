import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { permissionsOf } from '../../identity/permissions.ts'
import { anonymous } from '../../identity/principal.ts'
import { assertMayChange } from './user.ts'
import { emailSchema, normaliseEmail, type UserRole, userRoles } from './user-resource.ts'

const person = (role: UserRole) => ({ ...anonymous, roles: [role], permissions: permissionsOf([role]) })

test('strips blanks from an e-mail address and lowers its case', () => {
  expect(normaliseEmail('  Ann.Other@EXAMPLE.com\n')).toBe('ann.other@example.com')
})

test('normalising an e-mail address twice changes nothing more', () => {
  fc.assert(fc.property(fc.string(), (text) => normaliseEmail(normaliseEmail(text)) === normaliseEmail(text)))
})

test('refuses an invalid e-mail address', () => {
  const bad = ['', 'a', '@', 'a@', '@b', 'a b@c', 'a@b@c', 'a\u0000@b.example', `${'a'.repeat(65)}@b.example`]
  expect(bad.filter((text) => emailSchema.safeParse(text).success)).toEqual([])
})

test('only an owner creates, changes or demotes an owner', () => {
  expect(() => assertMayChange(person('owner'), 'owner', 'admin')).not.toThrow()
  expect(() => assertMayChange(person('owner'), null, 'owner')).not.toThrow()
  expect(() => assertMayChange(person('admin'), null, 'owner')).toThrow('Only an owner')
  expect(() => assertMayChange(person('admin'), 'owner', 'member')).toThrow('Only an owner')
  expect(() => assertMayChange(person('admin'), 'owner', 'owner')).toThrow('Only an owner')
})

test('nobody grants a role with more permissions than their own', () => {
  fc.assert(
    fc.property(fc.constantFrom(...userRoles), fc.constantFrom(...userRoles), (actor, role) => {
      const granted = permissionsOf([role])
      const within = [...granted].every((permission) => permissionsOf([actor]).has(permission))
      const mayGrant = within && (role !== 'owner' || actor === 'owner')
      try {
        assertMayChange(person(actor), null, role)
        return mayGrant
      } catch {
        // Refused: right exactly where the role reaches further than the actor's.
        return !mayGrant
      }
    }),
  )
})
