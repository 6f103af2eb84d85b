/** The classes of governed keys. */
export const keyClasses = ['durable', 'virtual', 'disposable'] as const
export type KeyClass = (typeof keyClasses)[number]
