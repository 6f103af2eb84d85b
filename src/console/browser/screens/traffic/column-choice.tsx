/** Chooses and orders the columns of the list of requests; the choice is in the address, so that a link shows the same. */
import { useState } from 'preact/hooks'
import { setQuery } from '../../address.ts'
import { Dialog } from '../../parts/frame/dialog.tsx'
import { Icon } from '../../parts/icon.tsx'
import { type ColumnName, chosenColumns, columnNames, columnTitle, usualColumns } from './event-columns.tsx'

export function ColumnChoice({ close }: { close(): void }) {
  const [chosen, setChosen] = useState<readonly ColumnName[]>(chosenColumns())
  const others = columnNames.filter((name) => !chosen.includes(name))
  const move = (name: ColumnName, by: number) => {
    const from = chosen.indexOf(name)
    setChosen(chosen.filter((one) => one !== name).toSpliced(from + by, 0, name))
  }
  const show = () => {
    const usual = chosen.join() === usualColumns.join() || chosen.length === 0
    setQuery({ columns: usual ? null : chosen.join() }, { keepPage: true, replace: true })
    close()
  }
  return (
    <Dialog title="Columns" close={close}>
      <ul class="stack close" aria-label="Columns in order">
        {[...chosen, ...others].map((name) => {
          const at = chosen.indexOf(name)
          const title = columnTitle(name)
          return (
            <li class="row between" key={name}>
              <label class="row">
                <input
                  type="checkbox"
                  checked={at >= 0}
                  onChange={() => setChosen(at < 0 ? [...chosen, name] : chosen.filter((one) => one !== name))}
                />
                {title}
              </label>
              {at >= 0 && (
                <span class="row">
                  <button
                    type="button"
                    class="icon"
                    aria-label={`${title} earlier`}
                    disabled={at === 0}
                    onClick={() => move(name, -1)}
                  >
                    <Icon name="up" />
                  </button>
                  <button
                    type="button"
                    class="icon"
                    aria-label={`${title} later`}
                    disabled={at === chosen.length - 1}
                    onClick={() => move(name, 1)}
                  >
                    <Icon name="down" />
                  </button>
                </span>
              )}
            </li>
          )
        })}
      </ul>
      <div class="row end">
        <button type="button" onClick={() => setChosen(usualColumns)}>
          Usual columns
        </button>
        <button type="button" class="primary" onClick={show}>
          Show
        </button>
      </div>
    </Dialog>
  )
}
