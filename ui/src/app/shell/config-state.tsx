import { Link } from 'wouter'
import { useConfigStatus } from '../../api/config-status.ts'
import { Badge } from '../../components/feedback/badge.tsx'

/** State of the configuration in the top bar: active, refused, or unreachable. */
export function ConfigState() {
  const { data, isError } = useConfigStatus()
  if (isError)
    return (
      <Badge tone="bad" dot>
        Gateway unreachable
      </Badge>
    )
  if (data === undefined) return null
  return (
    <Link href="/tools/configuration" className="max-sm:hidden">
      {!data.lastError ? (
        <Badge tone="good" dot>
          Configuration active
        </Badge>
      ) : (
        <Badge tone="warn" dot>
          Change refused
        </Badge>
      )}
    </Link>
  )
}
