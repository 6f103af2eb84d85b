/**
 * The pages of the handbook. The build puts them into the executable in place of this; from source they are read here.
 */
import { type HandbookPage, readPages } from './read-pages.ts'

export const handbookPages = (): Promise<readonly HandbookPage[]> => readPages()
