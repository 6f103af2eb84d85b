/** What a person chose for this browser. It keeps nothing else but saved views (`screens/traffic/saved-views.ts`): no secret, no data. */
import { signal } from '@preact/signals'

export type Theme = 'system' | 'light' | 'dark'

const key = 'gatehouse-theme'

const kept = (): Theme => {
  const value = localStorage.getItem(key)
  return value === 'light' || value === 'dark' ? value : 'system'
}

export const theme = signal<Theme>(kept())

export function applyTheme(next: Theme = theme.peek()): void {
  theme.value = next
  if (next === 'system') {
    localStorage.removeItem(key)
    delete document.documentElement.dataset.theme
  } else {
    localStorage.setItem(key, next)
    document.documentElement.dataset.theme = next
  }
}

const dark = matchMedia('(prefers-color-scheme: dark)')
const systemIsDark = signal(dark.matches)
dark.addEventListener('change', ({ matches }) => {
  systemIsDark.value = matches
})

/** As it is now; whoever draws by it is drawn again when a person, or their system at dusk, changes it. */
export const isDark = (): boolean => theme.value === 'dark' || (theme.value === 'system' && systemIsDark.value)
