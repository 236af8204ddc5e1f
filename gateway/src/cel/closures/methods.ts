import { addressMethods } from './addresses.ts'
import { type TextMethod, textMethods } from './text.ts'

/** Methods that both engines share. */
export const sharedMethods: readonly TextMethod[] = [...textMethods, ...addressMethods]
