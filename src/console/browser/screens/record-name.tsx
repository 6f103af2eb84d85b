/** The name of a record that is known by its id. Each is asked for once; an id stands where the name cannot be read. */
import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { request } from '../api/request.ts'
import { shortId } from '../formats.ts'
import type { JsonObject } from '../parts/forms/schema-form.tsx'
import { userText } from '../parts/user-text.tsx'
import { hasPermission } from '../session.ts'

const kinds = {
  tokens: { path: '/v1/tokens', permission: 'tokens:read' },
  users: { path: '/v1/users', permission: 'members:read' },
  policies: { path: '/v1/policies', permission: 'policies:read' },
} as const

const names = signal<ReadonlyMap<string, string>>(new Map())
const asked = new Set<string>()

export function RecordName({ kind, id }: { kind: keyof typeof kinds; id: string | null | undefined }) {
  const { path, permission } = kinds[kind]
  useEffect(() => {
    if (id == null || asked.has(id) || !hasPermission(permission)) return
    asked.add(id)
    request<JsonObject>('GET', `${path}/${encodeURIComponent(id)}`).then(
      ({ name, email }) => {
        names.value = new Map(names.peek()).set(id, String(name ?? email))
      },
      // It was deleted, or is another's: its id is shown.
      () => undefined,
    )
  }, [id])
  if (id == null) return <>–</>
  return (
    <span class="name" title={id}>
      {userText(names.value.get(id) ?? shortId(id))}
    </span>
  )
}
