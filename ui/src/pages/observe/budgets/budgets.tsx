import { Page } from '../../../components/layout/page.tsx'

export default function Budgets() {
  return <Page title="Budgets">Soon</Page>
}
