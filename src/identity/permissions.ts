/** Permissions, the roles that hold them, and which purposes may hold which roles (identity/README.md). */

export const permissions = [
  'tokens:read',
  'tokens:write',
  'tokens:revoke',
  'oauth-clients:read',
  'oauth-clients:write',
  'events:read',
  'events:export',
  'escalations:read',
  'escalations:resolve',
  'policies:read',
  'policies:write',
  'catalog:read',
  'catalog:write',
  'members:read',
  'members:write',
  'gateway:invoke',
  'mcp:invoke',
  'runtime:connect',
] as const
export type Permission = (typeof permissions)[number]

export const isPermission = (text: string): text is Permission => permissions.some((permission) => permission === text)

export const roles = ['owner', 'admin', 'operator', 'auditor', 'member', 'runtime'] as const
export type Role = (typeof roles)[number]

const reads = permissions.filter((permission) => permission.endsWith(':read'))
const people = permissions.filter((permission) => permission !== 'runtime:connect')

const granted: Record<Role, readonly Permission[]> = {
  owner: people,
  admin: people,
  operator: [
    ...reads,
    'tokens:revoke',
    'escalations:resolve',
    'policies:write',
    'catalog:write',
    'gateway:invoke',
    'mcp:invoke',
  ],
  auditor: [...reads, 'events:export'],
  // A member reads only their own records: `tokens/visibility.ts` here and in events.
  member: ['gateway:invoke', 'mcp:invoke', 'tokens:read', 'events:read'],
  runtime: ['runtime:connect'],
}

/** The union of the permissions of these roles. */
export function permissionsOf(held: readonly Role[]): ReadonlySet<Permission> {
  return new Set(held.flatMap((role) => granted[role]))
}

/** Whether `held` may assign `wanted`: only permissions they have, and the role owner only by an owner. */
export const rolesWithin = (held: readonly Role[], wanted: readonly Role[]): boolean =>
  permissionsOf(wanted).isSubsetOf(permissionsOf(held)) && (!wanted.includes('owner') || held.includes('owner'))
