/** The path of libSQL's native addon inside the executable; the build fills it in, from source there is none. */
export const embeddedAddon: string | null = null
