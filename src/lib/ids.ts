/** Makes UUIDv7 identifiers (RFC 9562 section 5.7): sortable by the time they were made. */
export type NewId = () => string

export const newId: NewId = () => Bun.randomUUIDv7()

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

export const isUuid = (text: string): boolean => uuid.test(text)
