/** The saved views: goes to one, saves what is shown, or forgets one. */
import { useState } from 'preact/hooks'
import { address, navigate } from '../../address.ts'
import { installation } from '../../installation.ts'
import { TextField } from '../../parts/forms/field.tsx'
import { Dialog } from '../../parts/frame/dialog.tsx'
import { showToast } from '../../parts/frame/toast.tsx'
import { Icon } from '../../parts/icon.tsx'
import { copy } from '../../parts/small.tsx'
import { userText } from '../../parts/user-text.tsx'
import { forgetView, savedViews, saveView } from './saved-views.ts'

const pathOf = (query: string): string => `${installation.path}/traffic${query === '' ? '' : `?${query}`}`

export function ViewsDialog({ close }: { close(): void }) {
  const [name, setName] = useState('')
  const views = savedViews()
  const open = (query: string) => {
    navigate(pathOf(query))
    close()
  }
  return (
    <Dialog title="Views" close={close}>
      {views.length === 0 ? (
        <p class="quiet">No view is saved in this browser yet.</p>
      ) : (
        <ul class="stack close" aria-label="Saved views">
          {views.map((view) => (
            <li class="row between" key={view.name}>
              <button type="button" class="plain" onClick={() => open(view.query)}>
                {userText(view.name)}
              </button>
              <span class="row tight">
                <button
                  type="button"
                  class="plain icon"
                  aria-label={`Copy the address of ${view.name}`}
                  onClick={() => copy(new URL(pathOf(view.query), location.href).href, 'Address')}
                >
                  <Icon name="copy" />
                </button>
                <button
                  type="button"
                  class="plain icon"
                  aria-label={`Forget ${view.name}`}
                  onClick={() => forgetView(view.name)}
                >
                  <Icon name="close" />
                </button>
              </span>
            </li>
          ))}
        </ul>
      )}
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault()
          saveView(name.trim(), address.value.query)
          showToast('View saved')
          close()
        }}
      >
        <TextField
          label="Save what is shown as"
          hint="Filters, columns and time range, kept in this browser. To share a view, copy its address: it opens for everybody who may sign in."
          value={name}
          set={setName}
          required
        />
        <div class="row end">
          <button type="button" onClick={close}>
            Close
          </button>
          <button type="submit" class="primary" disabled={name.trim() === ''}>
            Save
          </button>
        </div>
      </form>
    </Dialog>
  )
}
