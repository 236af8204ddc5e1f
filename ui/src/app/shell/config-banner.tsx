import { useConfigStatus } from '../../api/config-status.ts'
import { useWhoami } from '../../api/whoami.ts'
import { Notice } from '../../components/feedback/notice.tsx'

/** Above every page: a refused configuration, and storage that cannot be changed. */
export function ConfigBanner() {
  const { data: status } = useConfigStatus()
  const { data: whoami } = useWhoami()
  const refused = status?.lastError
  if (!refused && whoami?.storage.readOnly !== true) return null
  return (
    <div className="space-y-2 px-4 pt-4 sm:px-6 lg:px-8">
      {refused && (
        <Notice tone="warn" title="The latest configuration is not active. The one before it still serves.">
          <span className="whitespace-pre-wrap">{refused}</span>
        </Notice>
      )}
      {whoami?.storage.readOnly && (
        <Notice title="The configuration is read-only.">{whoami.storage.reason}</Notice>
      )}
    </div>
  )
}
