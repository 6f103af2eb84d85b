/** Who is signed in, as the API says it. */
import type { Permission, Role } from '../../../identity/permissions.ts'
import type { User } from '../../../members/people/user-resource.ts'

export interface Session {
  id: string
  kind: 'browser' | 'program'
  program: string | null
  created_at: string
  last_used_at: string
  expires_at: string
  current: boolean
}

export interface Caller {
  kind: 'session' | 'token' | 'runtime'
  user: User | null
  roles: Role[]
  permissions: Permission[]
  session: Session | null
  csrf_token: string | null
}
