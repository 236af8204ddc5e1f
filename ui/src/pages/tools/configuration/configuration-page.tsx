import { FileCog } from 'lucide-react'
import { lazy, Suspense, useState } from 'react'
import { useSearchParams } from 'wouter'
import { ApiError } from '../../../api/client.ts'
import { useConfigFile } from '../../../api/tools/config-file.ts'
import { useWhoami } from '../../../api/whoami.ts'
import { Button } from '../../../components/action/button.tsx'
import { EmptyState } from '../../../components/feedback/empty-state.tsx'
import { ErrorState } from '../../../components/feedback/error-state.tsx'
import { SkeletonLines } from '../../../components/feedback/skeleton.tsx'
import { Card } from '../../../components/layout/card.tsx'
import { Page } from '../../../components/layout/page.tsx'
import { Tabs } from '../../../components/layout/tabs.tsx'
import { FileEditor } from './file-editor.tsx'

// It needs the YAML library, which the editor of the file does not.
const EffectivePane = lazy(() => import('./effective-pane.tsx'))

type View = 'file' | 'effective'

/** The configuration file as a text, and the configuration that runs. */
export default function ConfigurationPage() {
  const [parameters, setParameters] = useSearchParams()
  const view: View = parameters.get('view') === 'effective' ? 'effective' : 'file'
  return (
    <Page
      title="Configuration"
      about="The configuration file with completion and checks, and the configuration that is active: file and database together."
    >
      <Tabs
        label="Views of the configuration"
        value={view}
        onChange={(next) => setParameters(next === 'file' ? {} : { view: next }, { replace: true })}
        tabs={[
          { value: 'file', label: 'File', content: <FilePane /> },
          {
            value: 'effective',
            label: 'Active',
            content: (
              <Suspense fallback={<SkeletonLines count={12} />}>
                <EffectivePane />
              </Suspense>
            ),
          },
        ]}
      />
    </Page>
  )
}

function FilePane() {
  const { data: whoami } = useWhoami()
  const [isAsked, setAsked] = useState(false)
  const mayRead = whoami?.mayReveal === true
  if (whoami === undefined) {
    return (
      <Card>
        <SkeletonLines count={12} />
      </Card>
    )
  }
  if (!mayRead) {
    return (
      <Card>
        <EmptyState icon={FileCog} title="Your role may not read the file">
          It contains secrets in clear. The tab Active has the configuration with masks in their place.
        </EmptyState>
      </Card>
    )
  }
  // On a gateway, other people may look at the screen; on the admin address the file is that of the user.
  if (whoami.login !== 'none' && !isAsked) {
    return (
      <Card>
        <EmptyState
          icon={FileCog}
          title="The file contains secrets in clear"
          action={
            <Button tone="primary" onClick={() => setAsked(true)}>
              Open the file
            </Button>
          }
        >
          Opening it is recorded in the audit log with your name.
        </EmptyState>
      </Card>
    )
  }
  return <LoadedFile />
}

function LoadedFile() {
  const file = useConfigFile()
  const { data, error, refetch } = file
  const [loads, setLoads] = useState(0)
  if (error instanceof ApiError && error.status === 404) {
    return (
      <Card>
        <EmptyState icon={FileCog} title="There is no configuration file">
          The configuration of this gateway comes from objects of a cluster. The tab Active displays it.
        </EmptyState>
      </Card>
    )
  }
  if (error && data === undefined) return <ErrorState error={error} onRetry={() => void refetch()} />
  if (data === undefined) {
    return (
      <Card>
        <SkeletonLines count={12} />
      </Card>
    )
  }
  return (
    <FileEditor
      key={loads}
      file={data}
      isReloading={file.isFetching}
      onReload={async () => {
        await refetch()
        setLoads(loads + 1)
      }}
    />
  )
}
