/** Revokes several tokens together, confirmed by how many they are. */
import { useState } from 'preact/hooks'
import { api, type Propagation, type TokenRecord } from '../../api/routes.ts'
import { countNoun } from '../../formats.ts'
import { Confirm } from '../../parts/frame/dialog.tsx'
import { userText } from '../../parts/user-text.tsx'
import { Done, PropagationNote } from './token-end.tsx'

const namesShown = 10

export function RevokeMany({ tokens, close }: { tokens: readonly TokenRecord[]; close(): void }) {
  const [reached, setReached] = useState<Propagation | null | undefined>(undefined)
  const many = countNoun(tokens.length, 'token')
  if (reached !== undefined) {
    return (
      <Done title={`${many} revoked`} close={close}>
        {reached !== null && <PropagationNote propagation={reached} />}
      </Done>
    )
  }
  return (
    <Confirm
      title={`Revoke ${many}`}
      name={String(tokens.length)}
      action="Revoke"
      close={close}
      done={() => undefined}
      work={async () => {
        const body = { token_ids: tokens.map(({ id }) => id) }
        setReached((await api('POST /v1/access-review/revoke', { body })).propagation)
      }}
    >
      <ul class="stack close">
        {tokens.slice(0, namesShown).map(({ id, name }) => (
          <li key={id}>{userText(name)}</li>
        ))}
        {tokens.length > namesShown && <li>and {tokens.length - namesShown} more</li>}
      </ul>
      <p>Whatever still uses them is refused with 401 from then on, on all gateways. This cannot be undone.</p>
    </Confirm>
  )
}
