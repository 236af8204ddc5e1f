import { ipMethods } from './ip-functions.ts'
import { type StringMethod, stringMethods } from './string-methods.ts'

/** Methods that both engines share. */
export const sharedMethods: readonly StringMethod[] = [...stringMethods, ...ipMethods]
