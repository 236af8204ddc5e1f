import { ipMethods } from './ip-functions.ts'
import { type StringMethod, stringMethods } from './string-methods.ts'

/** Methods of both engines. */
export const sharedMethods: readonly StringMethod[] = [...stringMethods, ...ipMethods]
