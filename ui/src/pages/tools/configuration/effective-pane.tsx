import { useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { stringify } from 'yaml'
import { api } from '../../../api/client.ts'
import { CopyButton } from '../../../components/action/copy-button.tsx'
import { ErrorState } from '../../../components/feedback/error-state.tsx'
import { SkeletonLines } from '../../../components/feedback/skeleton.tsx'
import { Card } from '../../../components/layout/card.tsx'
import { CodeEditor } from '../../../editors/code-editor.tsx'

type Effective = {
  readonly config: unknown
  readonly sources: readonly { readonly path: string; readonly source: string }[]
}

/** The active configuration of file and database, with secrets masked. */
export default function EffectivePane() {
  const { data, error, refetch } = useQuery({
    queryKey: ['effective'],
    queryFn: ({ signal }) => api<Effective>('/api/config/effective', { signal }),
  })
  const text = useMemo(() => (data === undefined ? '' : stringify(data.config, { lineWidth: 100 })), [data])
  if (error && data === undefined) return <ErrorState error={error} onRetry={() => void refetch()} />
  const stored = data?.sources.filter(({ source }) => source === 'database').length ?? 0
  return (
    <Card
      title="Active configuration"
      about={
        stored === 0
          ? 'All of it comes from the file. Secrets are masked.'
          : `${stored} parts come from the database, the others from the file. Secrets are masked.`
      }
      actions={data && <CopyButton text={text} label="Copy the configuration" />}
    >
      {data === undefined ? (
        <SkeletonLines count={12} />
      ) : (
        <CodeEditor language="yaml" size="tall" label="Active configuration" value={text} readOnly />
      )}
    </Card>
  )
}
