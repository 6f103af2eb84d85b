/** One screen: where it is, what it is called, who may see it. */
import type { ComponentChild } from 'preact'
import type { Permission } from '../../identity/permissions.ts'
import type { IconName } from './parts/icon.tsx'

export interface Screen {
  /** Below the console's address; `{id}` stands for one part. */
  path: string
  title: string
  /** Null: everybody who is signed in. */
  permission: Permission | null
  show(part: { id: string }): ComponentChild
  /** Whether the time range governs what it shows. */
  ranged: boolean
  /** Where it is in the menu: its drawing, and the key that follows `g`. */
  menu?: { icon: IconName; key: string }
}
