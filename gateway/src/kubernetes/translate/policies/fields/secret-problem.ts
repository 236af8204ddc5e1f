import { formatPath, type Path } from '../../../../schema/path.ts'
import type { Field } from './field.ts'

/** A missing object without which a field cannot apply: its targets refuse requests. */
export function secretProblem(
  { reason, message }: { readonly reason: string; readonly message: string },
  path: Path,
): Pick<Field, 'mistakes' | 'unresolved'> {
  return {
    mistakes: [{ path, message }],
    unresolved: [{ reason, message: `${formatPath(path)}: ${message}` }],
  }
}
